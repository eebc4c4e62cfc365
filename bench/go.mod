module gompi/bench

go 1.26

require (
	golang.org/x/sys v0.38.0
	gompi v0.0.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/spf13/pflag v1.0.10 // indirect
)

replace gompi => ..

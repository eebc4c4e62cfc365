module gompi

go 1.26

require (
	github.com/google/uuid v1.6.0
	github.com/libp2p/go-reuseport v0.4.0
	github.com/rogpeppe/go-internal v1.14.1
	github.com/spf13/pflag v1.0.10
	golang.org/x/sys v0.38.0
	gonum.org/v1/gonum v0.17.0
	gonum.org/v1/plot v0.16.0
)

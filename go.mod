module gompi

go 1.26

require (
	github.com/NVIDIA/go-nvml v0.13.3-0
	github.com/google/uuid v1.6.0
	github.com/spf13/pflag v1.0.10
	golang.org/x/sys v0.38.0
	gonum.org/v1/gonum v0.17.0
)

require golang.org/x/tools v0.30.0 // indirect

require github.com/rogpeppe/go-internal v1.14.1

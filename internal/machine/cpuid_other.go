//go:build !amd64

package machine

func identity() id { return id{} }

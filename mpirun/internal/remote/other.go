//go:build !linux

package remote

import "syscall"

func session() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func quicken(int) {}

#include "textflag.h"

// func PrefetchToWrite(at unsafe.Pointer, n int)
TEXT ·PrefetchToWrite(SB), NOSPLIT, $0-16
	MOVQ at+0(FP), AX
	MOVQ n+8(FP), CX

line:
	// PREFETCHW (AX), which the assembler does not know. Processors without it do nothing.
	BYTE $0x0f; BYTE $0x0d; BYTE $0x08
	ADDQ $64, AX
	SUBQ $64, CX
	JGT  line
	RET

// func Prefetch(at unsafe.Pointer, n int)
TEXT ·Prefetch(SB), NOSPLIT, $0-16
	MOVQ at+0(FP), AX
	MOVQ n+8(FP), CX

line:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	SUBQ $64, CX
	JGT  line
	RET

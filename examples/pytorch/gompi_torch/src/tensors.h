// What tensors, operators and errors of torch are to gompi.
#pragma once

#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "gompi.h"

namespace gompi_torch {

// Throws what the last call said, if its code is not GOMPI_OK.
void check(int code);

// The type of a tensor's elements. Those of at::kBool are bytes that are 0 or 1.
gompi_type typeOf(const at::Tensor& t);

// The operator for a tensor's elements. Booleans stay 0 or 1: their sum is "or".
gompi_op opOf(const c10d::ReduceOp& op, const at::Tensor& t);

// Throws if t is not in the memory of the processor, or has elements that share memory or gaps
// between them. Such a tensor is numel() elements from data_ptr() on, in whatever order.
void wantDense(const at::Tensor& t);

// The tensor of a list that has one.
at::Tensor& only(std::vector<at::Tensor>& tensors);

// One tensor in place of several alike: they lie in it one behind the other.
struct Flat {
	// Of tensors that are to be written: store() copies what has come to them. If they lie one
	// behind the other already, nothing is copied.
	static Flat toWrite(const std::vector<at::Tensor>& tensors);
	// Of tensors that are to be read, as they are now.
	static Flat toRead(const std::vector<at::Tensor>& tensors);

	void store();

	at::Tensor all;
	std::vector<at::Tensor> parts; // empty if nothing is to be copied
};

} // namespace gompi_torch

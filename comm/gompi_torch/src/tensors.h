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

// The type of a tensor's elements. Elements of at::kBool are bytes that are 0 or 1. Types that are
// no numbers to gompi, as float8, move as integers of their size.
gompi_type typeOf(const at::Tensor& t);

// The tensor of a list that has one.
at::Tensor& only(std::vector<at::Tensor>& tensors);

// A Flat has the numbers of tensors in one piece of memory: one tensor behind the other, each in
// the order of its shape. So tensors of other ranks may have other strides. It is the tensors' own
// memory where their numbers lie so; else load and store copy them.
class Flat {
public:
	// Throws if one of them is not in the memory of the processor, or if they have several types.
	explicit Flat(const at::Tensor& t);
	explicit Flat(const std::vector<at::Tensor>& tensors);
	// Throws, too, unless all have as many numbers.
	static Flat alike(const std::vector<at::Tensor>& tensors);
	// The same for a call that reduces the numbers. It throws if the operator is not for them.
	// Booleans stay 0 or 1: their sum is "or".
	Flat reducedBy(const c10d::ReduceOp& op) const;

	// Makes room, and copies what the tensors have now, multiplied if the operator wants it.
	void load();
	// Makes room for what is to come.
	void open();
	// Copies the numbers to the tensors. It throws if some of their elements share memory.
	void store();

	// Where the numbers are, after load or open.
	void* data() const { return all.data_ptr(); }
	int64_t count() const { return n; }
	at::ScalarType scalarType() const { return element; }
	gompi_type type() const { return kind; }
	gompi_op op() const { return operation; } // after reducedBy
	size_t bytes() const { return n * c10::elementSize(element); }

private:
	void add(const at::Tensor& t);
	// The part of all that has the numbers of a tensor, in its shape.
	at::Tensor take(const at::Tensor& t, int64_t& at) const;

	at::Tensor all;
	std::vector<at::Tensor> parts; // empty if nothing is to be copied
	int64_t n = 0;
	at::ScalarType element;
	gompi_type kind;
	gompi_op operation = GOMPI_SUM;
	at::Tensor factor; // of the numbers that are reduced, if there is one
};

// Runs a call of gompi that reads the numbers of in, and fills out.
template <typename Call> int through(Flat& in, Flat& out, Call call) {
	in.load();
	out.open();
	int err = call();
	if (!err)
		out.store();
	return err;
}

// Runs a call of gompi that changes the numbers of t in place, and stores them if they are wanted.
template <typename Call> int inPlace(Flat& t, bool wanted, Call call) {
	t.load();
	int err = call();
	if (!err && wanted)
		t.store();
	return err;
}

} // namespace gompi_torch

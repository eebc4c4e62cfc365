// The futures of works: each has the work's tensors, in a list.
#pragma once

#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/ivalue_inl.h>

namespace gompi_torch {

using FuturePtr = c10::intrusive_ptr<c10::ivalue::Future>;

inline FuturePtr newFuture() {
	return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
}

// Completes a future, and runs its callbacks.
inline void settle(c10::ivalue::Future& future, const std::vector<at::Tensor>& outputs, const std::exception_ptr& error) {
	if (error)
		future.setError(error);
	else
		future.markCompleted(at::IValue(outputs));
}

} // namespace gompi_torch

// The futures of works: each has the work's tensors, in a list.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/ivalue_inl.h>

#include "python.h"

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

// Completes a future of a work on a thread of its own: its callbacks may want what this thread holds.
template <typename Work> void settleElsewhere(FuturePtr future, std::vector<at::Tensor> outputs, std::exception_ptr error, c10::intrusive_ptr<Work> work) {
	auto python = std::make_shared<PythonWork>();
	std::thread([future, outputs = std::move(outputs), error, work, python]() mutable {
		settle(*future, outputs, error);
		future.reset();
		outputs.clear();
		error = nullptr;
		work.reset(); // before the process hears that nothing of Python's is left here
		python.reset();
	}).detach();
}

} // namespace gompi_torch

// What may run Python on threads of ours, and Python's end.
#pragma once

#include <chrono>

namespace gompi_torch {

// A PythonWork is something under way on another thread that may want Python's lock: callbacks of
// futures, and destructors of tensors. A thread that wants it when Python has ended takes the
// process with it.
class PythonWork {
public:
	PythonWork();
	~PythonWork();
	PythonWork(const PythonWork&) = delete;

	// Waits until there is none, or the time is over.
	static void awaitAll(std::chrono::milliseconds time);
};

} // namespace gompi_torch

// Python's functions. They are searched in the process: what is compiled has no symbol of Python,
// so that one file serves all of its versions.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include <torch/version.h>
#if TORCH_VERSION_MAJOR < 2
#include <torch/csrc/utils/pybind.h>
#else
namespace pybind11 {
// As pybind11 has it, of which torch has a copy: its catch clauses find a class by its name.
class __attribute__((visibility("default"))) builtin_exception : public std::runtime_error {
public:
	using std::runtime_error::runtime_error;
	virtual void set_error() const = 0;
};
} // namespace pybind11
#endif

namespace gompi_torch::python {

// An object of Python's, whose class Python's headers have.
using Object = void*;

// Whether there is an interpreter, which may have ended.
bool runs();

// While there is a Locked the thread holds Python's lock.
class Locked {
public:
	Locked();
	~Locked();
	Locked(const Locked&) = delete;

private:
	const int before; // what the lock is given back by
};

// While there is an Unlocked the thread does not hold Python's lock, for others to run.
class Unlocked {
public:
	Unlocked();
	~Unlocked();
	Unlocked(const Unlocked&) = delete;

private:
	const Object thread; // what Python knows the thread by, or null if it did not hold the lock
};

// A Raised is the exception that Python's code has raised on this thread. torch raises it in its
// caller. Python's lock is held to make one, not to copy it or to let it go.
class __attribute__((visibility("hidden"))) Raised : public pybind11::builtin_exception {
public:
	Raised();
	void set_error() const override;

private:
	struct Error;
	std::shared_ptr<Error> error;
};

// The rest wants Python's lock.

// Runs the signal handlers that are due, and throws what one raises.
void handleSignals();
// A function without arguments that Python has, kept for ever, and what it returns.
class Function {
public:
	explicit Function(Object function);
	std::string text() const;
	int number() const;

private:
	Object call() const;

	const Object function;
};
// Has the caller in Python get the error when it goes on.
void raise(const std::exception_ptr& error);

} // namespace gompi_torch::python

#include "interpreter.h"

#include <dlfcn.h>

#include "fail.h"

namespace gompi_torch::python {

namespace {

// What this process has by a name.
struct Symbol {
	const char* name;
	template <typename T> operator T*() const {
		void* found = dlsym(RTLD_DEFAULT, name);
		if (!found)
			fail("this process has no ", name, ": want Python's interpreter in it");
		return reinterpret_cast<T*>(found);
	}
};

struct Functions {
	int (*isInitialized)() = Symbol{"Py_IsInitialized"};
	int (*ensureLock)() = Symbol{"PyGILState_Ensure"};
	void (*releaseLock)(int) = Symbol{"PyGILState_Release"};
	int (*hasLock)() = Symbol{"PyGILState_Check"};
	Object (*saveThread)() = Symbol{"PyEval_SaveThread"};
	void (*restoreThread)(Object) = Symbol{"PyEval_RestoreThread"};
	void (*increase)(Object) = Symbol{"Py_IncRef"};
	void (*decrease)(Object) = Symbol{"Py_DecRef"};
	int (*checkSignals)() = Symbol{"PyErr_CheckSignals"};
	void (*fetch)(Object*, Object*, Object*) = Symbol{"PyErr_Fetch"};
	void (*restore)(Object, Object, Object) = Symbol{"PyErr_Restore"};
	void (*setString)(Object, const char*) = Symbol{"PyErr_SetString"};
	Object (*call)(Object, Object) = Symbol{"PyObject_CallObject"};
	const char* (*text)(Object, ssize_t*) = Symbol{"PyUnicode_AsUTF8AndSize"};
	long (*number)(Object) = Symbol{"PyLong_AsLong"};
	Object (*occurred)() = Symbol{"PyErr_Occurred"};
	Object* runtimeError = Symbol{"PyExc_RuntimeError"};
};

const Functions& its() {
	static const auto* all = new Functions; // threads outlive main
	return *all;
}

} // namespace

bool runs() { return its().isInitialized(); }

Locked::Locked() : before(its().ensureLock()) {}
Locked::~Locked() { its().releaseLock(before); }

Unlocked::Unlocked() : thread(runs() && its().hasLock() ? its().saveThread() : nullptr) {}
Unlocked::~Unlocked() {
	if (thread)
		its().restoreThread(thread);
}

struct Raised::Error {
	Object type, value, trace;

	~Error() {
		if (!runs())
			return;
		Locked lock;
		for (auto o : {type, value, trace})
			its().decrease(o);
	}
};

Raised::Raised() : builtin_exception("an exception of Python's"), error(std::make_shared<Error>()) {
	its().fetch(&error->type, &error->value, &error->trace);
}

void Raised::set_error() const {
	Locked lock;
	for (auto o : {error->type, error->value, error->trace})
		its().increase(o);
	its().restore(error->type, error->value, error->trace);
}

void handleSignals() {
	if (its().checkSignals() != 0)
		throw Raised();
}

Function::Function(Object function) : function(function) { its().increase(function); }

Object Function::call() const {
	if (auto result = its().call(function, nullptr))
		return result;
	throw Raised();
}

std::string Function::text() const {
	auto result = call();
	auto text = its().text(result, nullptr);
	std::string copy = text ? text : "";
	its().decrease(result);
	if (!text)
		throw Raised();
	return copy;
}

int Function::number() const {
	auto result = call();
	auto number = its().number(result);
	its().decrease(result);
	if (its().occurred())
		throw Raised();
	return static_cast<int>(number);
}

void raise(const std::exception_ptr& error) {
	// torch's own knows the types of torch's errors in Python, and what its stores in Python raise.
	using Translate = void (*)(const std::exception_ptr&);
	static const auto translate = reinterpret_cast<Translate>(dlsym(dlopen("libtorch_python.so", RTLD_LAZY | RTLD_NOLOAD),
		"_ZN5torch29translate_exception_to_pythonERKNSt15__exception_ptr13exception_ptrE"));
	if (translate)
		return translate(error);
	try {
		std::rethrow_exception(error);
	} catch (c10::Error& e) {
		its().setString(*its().runtimeError, e.what_without_backtrace());
	} catch (std::exception& e) {
		its().setString(*its().runtimeError, e.what());
	}
}

} // namespace gompi_torch::python

// Signals that come while a thread waits in gompi.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "gompi.h"
#include "interpreter.h"

namespace gompi_torch {

// Python runs signal handlers between its instructions, on the main thread. While there is an
// Interruptible there, calls of gompi that wait run them about every 200 ms. If one raises, as
// SIGINT's does, the call ends with GOMPI_ERR_INTERRUPTED, and rethrow throws it. On other threads
// it only asks help.
class Interruptible {
public:
	// The line of Python's code that waits on this thread, "" if there is none. Python's lock is held.
	static std::function<std::string()> here_in_python;
	// The number, of gompi_place, of the line that calls on this thread; not set where no call is
	// counted. Python's lock is held.
	static std::function<int()> numberOfPlace;
	// run, with its calls counted at that line. It takes Python's lock where calls are counted.
	static std::function<int()> countedHere(std::function<int()> run);

	// help, if there is one, is asked as gompi_set_check says, but never ends a call.
	explicit Interruptible(gompi_check help = nullptr, void* arg = nullptr);
	~Interruptible();
	Interruptible(const Interruptible&) = delete;

	// How often handlers run, in milliseconds.
	static constexpr int64_t period = 200;

	// Whether this is the main thread.
	static bool here();
	// Whether the program has signal handlers of its own, as Python's side knows. They may call anything.
	static std::atomic<bool> callsHandlers;
	// Runs the handlers on the main thread, and throws what one raises.
	static void poll();
	// Throws what a handler has raised in a call of this thread, if one has.
	static void rethrow();

private:
	static int64_t ask(void* self, int64_t waited);

	const gompi_check help;
	void* const arg;
	// Has reports name where Python waits, once. It reports whether a handler has raised meanwhile.
	bool placeRaises();

	Interruptible* const outer;
	bool placed = false;
	int64_t last = 0; // when handlers ran, of the milliseconds that a call has waited
};

} // namespace gompi_torch

#include "interrupt.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <sys/syscall.h>
#include <unistd.h>

namespace gompi_torch {

constexpr int64_t Interruptible::period;
std::function<std::string()> Interruptible::here_in_python;
std::function<int()> Interruptible::numberOfPlace;
std::atomic<bool> Interruptible::callsHandlers{false};

namespace {

thread_local Interruptible* innermost;
thread_local std::exception_ptr raised;

// Runs Python's code, and reports whether it raises, which is kept.
template <typename Code> bool raises(Code code) {
	python::Locked lock;
	try {
		code();
		return false;
	} catch (python::Raised&) {
		raised = std::current_exception();
		return true;
	}
}

} // namespace

bool Interruptible::here() {
	static thread_local const bool main = getpid() == syscall(SYS_gettid);
	return main;
}

Interruptible::Interruptible(gompi_check help, void* arg) : help(help), arg(arg), outer(innermost) {
	innermost = this;
	if (help || here())
		gompi_set_check(ask, this);
}

Interruptible::~Interruptible() {
	if (placed)
		gompi_set_site("");
	innermost = outer;
	if (outer || help || here())
		gompi_set_check(outer ? ask : nullptr, outer);
}

std::function<int()> Interruptible::countedHere(std::function<int()> run) {
	if (!numberOfPlace || !python::runs())
		return run;
	python::Locked lock;
	return [place = numberOfPlace(), run = std::move(run)] {
		gompi_set_place(place);
		struct Reset {
			~Reset() { gompi_set_place(0); }
		} reset;
		return run();
	};
}

bool Interruptible::placeRaises() {
	if (placed || !here_in_python)
		return false;
	placed = true;
	return raises([] { gompi_set_site(here_in_python().c_str()); }); // handlers run in it, too
}

int64_t Interruptible::ask(void* self, int64_t waited) {
	auto& i = *static_cast<Interruptible*>(self);
	int64_t again = i.help ? i.help(i.arg, waited) : 0;
	if (!here())
		return again;
	if (waited < i.last)
		i.last = 0; // it is another wait of the call
	if (waited - i.last >= period) {
		i.last = waited;
		if (raises(python::handleSignals) || i.placeRaises())
			return -1;
	}
	return again > 0 ? std::min(again, period) : period;
}

void Interruptible::poll() {
	if (!here())
		return;
	if (raises(python::handleSignals) || (innermost && innermost->placeRaises()))
		rethrow();
}

void Interruptible::rethrow() {
	if (raised)
		std::rethrow_exception(std::exchange(raised, nullptr));
}

} // namespace gompi_torch

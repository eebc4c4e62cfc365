// Wakes threads after a while.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>

#include <sys/timerfd.h>
#include <unistd.h>

#include "fail.h"

namespace gompi_torch {

// An Alarm rings once after it was set, for one thread. To set it again, before it rings, costs
// half a microsecond, and to wake a thread tens.
class Alarm {
public:
	Alarm() : timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
		if (timer < 0)
			fail("timerfd_create: ", std::strerror(errno));
	}
	~Alarm() { close(timer); }
	Alarm(const Alarm&) = delete;

	// Has it ring after the delay, of less than a second, and not before.
	void set(std::chrono::nanoseconds delay) {
		itimerspec in{};
		in.it_value.tv_nsec = delay.count();
		timerfd_settime(timer, 0, &in, nullptr);
	}
	// Blocks until it rings. Of several threads one wakes.
	void wait() {
		uint64_t times;
		while (read(timer, &times, sizeof times) < 0 && errno == EINTR) {
		}
	}

private:
	const int timer;
};

} // namespace gompi_torch

// Owns a communicator of gompi.
#pragma once

#include <utility>

#include "gompi.h"
#include "interrupt.h"

namespace gompi_torch {

// A Communicator is freed when it goes. That may wait for other ranks for a second.
class Communicator {
public:
	explicit Communicator(gompi_comm c) : c(c) {}
	Communicator(Communicator&& from) noexcept : c(std::exchange(from.c, GOMPI_COMM_NULL)) {}
	~Communicator() {
		if (c == GOMPI_COMM_NULL)
			return;
		python::Unlocked unlocked;
		gompi_free(c);
	}
	Communicator& operator=(Communicator&&) = delete;

	gompi_comm get() const { return c; }

private:
	gompi_comm c;
};

} // namespace gompi_torch

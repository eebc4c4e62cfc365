#include "python.h"

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace gompi_torch {

namespace {

std::atomic<int> count{0};
std::atomic<bool> awaited{false};

struct Changes {
	std::mutex mutex;
	std::condition_variable none;
};

Changes& changes() {
	static auto* one = new Changes; // threads outlive main
	return *one;
}

} // namespace

PythonWork::PythonWork() { count++; }

PythonWork::~PythonWork() {
	if (--count > 0 || !awaited)
		return;
	std::lock_guard<std::mutex> lock(changes().mutex);
	changes().none.notify_all();
}

void PythonWork::awaitAll(std::chrono::milliseconds time) {
	awaited = true;
	std::unique_lock<std::mutex> lock(changes().mutex);
	changes().none.wait_for(lock, time, [] { return count == 0; });
}

} // namespace gompi_torch

// Futures of messages, for which no thread may be waiting.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "messages.h"
#include "python.h"

namespace gompi_torch {

// A Watcher completes the futures of messages that are under way. One thread asks for all of them;
// while it runs callbacks, which may wait for other messages, another takes its place.
class Watcher {
public:
	using MessagePtr = c10::intrusive_ptr<Message>;

	// That of this process, for good.
	static Watcher& get();

	void add(MessagePtr m);

private:
	using Lock = std::unique_lock<std::mutex>;

	void serve();
	void watch(Lock& lock);
	void findThread();
	static bool blockOn(const std::vector<MessagePtr>& all, std::chrono::milliseconds slice);

	std::mutex mutex;
	std::condition_variable work;
	std::vector<MessagePtr> messages;
	std::vector<std::unique_ptr<PythonWork>> works; // one for each of messages, until it is announced
	bool watching = false; // a thread asks for them now
	int idle = 0;          // threads that wait for work
};

} // namespace gompi_torch

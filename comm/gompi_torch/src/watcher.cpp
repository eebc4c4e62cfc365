#include "watcher.h"

#include <algorithm>
#include <iterator>
#include <thread>

namespace gompi_torch {

using std::chrono::milliseconds;

// How long the thread waits for one message before it looks for the others, at least and at most.
constexpr milliseconds shortest{1}, longest{10};

Watcher& Watcher::get() {
	static auto* one = new Watcher; // its threads outlive main
	return *one;
}

void Watcher::add(MessagePtr m) {
	std::lock_guard<std::mutex> lock(mutex);
	messages.push_back(std::move(m));
	works.push_back(std::make_unique<PythonWork>());
	if (!watching)
		findThread();
}

void Watcher::findThread() {
	if (idle > 0)
		work.notify_one();
	else
		std::thread([this] { serve(); }).detach();
}

// serve is what threads do until the process ends.
void Watcher::serve() {
	Lock lock(mutex);
	for (;;) {
		while (!messages.empty() && !watching)
			watch(lock);
		idle++;
		work.wait(lock);
		idle--;
	}
}

// Waits until some message is over, and completes the futures of those that are. The lock is held
// before and after.
void Watcher::watch(Lock& lock) {
	std::vector<MessagePtr> over;
	watching = true;
	for (auto slice = shortest; over.empty(); slice = std::min(slice + shortest, longest)) {
		auto all = messages;
		lock.unlock();
		bool blocked = blockOn(all, slice);
		for (auto& m : all)
			if (m->over)
				over.push_back(m);
		all.clear();
		lock.lock();
		if (!blocked && over.empty())
			work.wait_for(lock, slice);
	}
	auto isOver = [&](auto& m) { return std::find(over.begin(), over.end(), m) != over.end(); };
	messages.erase(std::remove_if(messages.begin(), messages.end(), isOver), messages.end());
	std::vector<std::unique_ptr<PythonWork>> done(std::make_move_iterator(works.begin() + messages.size()), std::make_move_iterator(works.end()));
	works.resize(messages.size());
	watching = false;
	if (!messages.empty())
		findThread();
	lock.unlock();
	for (auto& m : over)
		m->announce(true);
	over.clear(); // which may end what uses gompi
	done.clear();
	lock.lock();
}

// Asks for all messages once, and blocks for one of them, unless all have threads that wait for
// them.
bool Watcher::blockOn(const std::vector<MessagePtr>& all, milliseconds slice) {
	bool blocked = false;
	for (auto& m : all) {
		if (m->over || m->waiting > 0)
			continue;
		try {
			m->helpIfLate();
			m->ask(blocked ? milliseconds(0) : slice);
		} catch (std::exception&) { // who waits for it is told
		}
		blocked = true;
	}
	return blocked;
}

} // namespace gompi_torch

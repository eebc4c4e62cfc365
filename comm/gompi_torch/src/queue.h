// Collectives of a group, which run one after the other, in the order in which they were called.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "alarm.h"
#include "gompi.h"
#include "hooks.h"
#include "member.h"

namespace gompi_torch {

class Queue;

using StorePtr = c10::intrusive_ptr<c10d::Store>;

// explainMismatch returns where the ranks of a group are when they have called different
// collectives, in words. Every rank of the group calls it, on the thread that gets the error, with
// the group's store.
extern std::function<std::string(const StorePtr& store, int rank, int size)> explainMismatch;
// Whether some wait has told of such.
extern std::atomic<bool> toldOfMismatch;

// A Collective is one call. It ends with an error, or with its outputs. Profilers show the title,
// and the shapes of its inputs.
class Collective : public c10d::Work {
public:
	Collective(std::shared_ptr<Queue> queue, c10d::OpType op, const char* title,
	           const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs, std::function<int()> run);

	// To ask again whether it is over, or how it has ended, has it run: its caller may wait in no other way.
	bool isCompleted() override;
	bool isSuccess() const override;
	std::exception_ptr exception() const override;
	std::vector<at::Tensor> result() override { return outputs; }
	// Blocks until it is over, and its future is complete, and throws its error. Without a timeout the
	// caller runs it, and those before it, if no thread does yet; none of their callbacks.
	bool wait(std::chrono::milliseconds timeout) override;
	c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
	uint64_t getCompletionKey() const { return key; } // overrides that of torch >= 2.15

private:
	friend class Queue;

	const uint64_t key = Hooks::newKey();
	const bool isShort; // it takes no longer than to wake a thread
	bool promised = false; // its caller waits for it
	std::shared_ptr<Queue> queue;
	std::vector<at::Tensor> outputs;
	std::function<int()> run;
	int code = 0; // what run has returned
	std::exception_ptr error;
	c10::intrusive_ptr<c10::ivalue::Future> future; // once it was asked for; Queue::mutex guards it
	std::atomic<bool> hasFuture{false};
	mutable std::atomic<bool> asked{false}; // whether it is over
	std::atomic<bool> over{false};
};

// A Queue runs the collectives of one group on a thread of its own, or on the thread that waits for
// them: a collective that is called and waited for at once costs no change of threads. Short ones
// are left to the waiting thread, where the last one was waited for at once; if no caller waits,
// the queue's thread does after a while.
//
// Callbacks of futures run on a thread of the queue: one that waits may hold a lock that they want.
// They may wait for later collectives, as PowerSGD's do. So before they run, another thread takes
// the thread's place.
//
// Python's signal handlers run in the midst of a collective that the main thread runs. Calls of a
// handler would wait for that collective, which goes on when the handler returns. So the main
// thread runs none where the program has handlers of its own.
//
// No tensor, callback or future goes or runs with the mutex held: they may be Python's, and then
// want Python's lock, whose holder may want the mutex.
class Queue : public std::enable_shared_from_this<Queue> {
public:
	Queue(StorePtr store, MemberPtr me, std::shared_ptr<Hooks> hooks)
		: me(std::move(me)), hooks(std::move(hooks)), store(std::move(store)) {}

	void push(const c10::intrusive_ptr<Collective>& c);
	// Says that this thread waits for the next collective that it calls, or no more that it does: no
	// other thread is woken for it. That would cost 20 to 50 us where ranks are bound to a processor.
	static void waitsForNext(bool does);
	// Blocks until all are over that were called before, but for one that this thread runs below,
	// and drops the store. None is called after it.
	void close();
	// The code of the first collective that failed and broke the group, GOMPI_OK if none has.
	int error() const { return failure.load(); }

private:
	friend class Collective;
	using Lock = std::unique_lock<std::mutex>;

	bool wait(Collective& c, std::chrono::milliseconds timeout);
	bool sleep(Lock& lock, std::chrono::steady_clock::time_point deadline);
	void runNext(Lock& lock, bool serves);
	bool runsBelow() const;
	void askFor(const Collective& c);
	void run(Collective& c);
	void leave();
	void hurry();
	void findRunner(std::chrono::nanoseconds delay);
	void serve();

	StorePtr storeOfGroup();

	const MemberPtr me;
	const std::shared_ptr<Hooks> hooks;
	std::atomic<int> failure{GOMPI_OK};

	static constexpr std::chrono::nanoseconds nobody = std::chrono::nanoseconds::max();

	std::mutex mutex;
	StorePtr store; // nullptr once closed
	std::deque<c10::intrusive_ptr<Collective>> queue;
	bool running = false;   // a collective runs now
	std::thread::id runner; // on this thread
	bool closed = false;
	bool waitedAtOnce = true; // the last short ones that their callers did not promise to wait for
	std::chrono::steady_clock::time_point left; // when a caller last left push, without that promise, or wait
	std::chrono::nanoseconds coming = nobody; // when the alarm was set for the first of the queue, with this delay
	int longs = 0;   // of the queue that are not short
	int idle = 0;    // threads that wait for the alarm
	int waiting = 0; // threads that wait for an end
	Alarm alarm;
	std::condition_variable end;
};

} // namespace gompi_torch

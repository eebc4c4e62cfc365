// Messages of a group. A send may wait for its receive while that rank waits in a send to this one:
// then messages are received here before there is a recv for them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "hooks.h"
#include "member.h"
#include "tensors.h"

namespace gompi_torch {

// A Transfer is a message under way, and what must stay as it is until that is over.
struct Transfer {
	Transfer() = default; // of one without a receive yet
	Transfer(const at::Tensor& t, bool receives);

	// Ends it with the code that gompi has returned: the tensor has what was received. It throws if
	// the message is not as the tensor wants.
	void finish(int code);

	std::optional<Flat> numbers;
	bool receives = true;
	gompi_request request = GOMPI_REQUEST_NULL;
	gompi_status status{};
	std::unique_ptr<char[]> early; // where the message is received, if it came before its receive was called

private:
	void takeEarly();
};

// Messages are those of one communicator that are received. All receives go through it.
//
// A long send waits for its receive. If two ranks send before they receive, each waits for the
// other, and so does a ring of them. So a rank that has waited for some time helps: it receives
// messages that have no recv yet into memory of its own, where calls of recv look first. Of each
// source and tag the messages stay in order: one lock is held from the look until the receive is
// posted.
//
// Messages that are kept so may have mostKept bytes of a group, and one message of any length more.
// Beyond that one is received each second: a rank that sends without end is slowed down, and two
// that wait for each other go on.
class Messages {
public:
	// How long a send waits before it helps, and a receive. A receive that its rank calls within
	// that time finds its message at the sender, and no copy is made. A rank that helps has nothing
	// else to do; but receives wait long in the best of programs, and only rarely for a rank that
	// waits in a send to this one of something else.
	static constexpr std::chrono::milliseconds sendHelpsAfter{1}, receiveHelpsAfter{1000};
	static constexpr size_t mostKept = size_t(256) << 20;

	explicit Messages(gompi_comm comm);

	// Throws unless there can be a message with this peer, of so many ranks, and tag.
	static void wantPeer(int peer, int ranks, int tag);
	// Begins the receive of t.
	Transfer receive(const at::Tensor& t, int from, int tag);
	// Receives what has arrived and has no recv, in all groups.
	static void help();
	// What was kept is forgotten, before the communicator is freed.
	~Messages();

private:
	struct All;
	static All& all();

	bool takeOne();

	const gompi_comm comm;
	std::list<Messages*>::iterator place; // in the list of all
	std::mutex mutex;
	std::list<Transfer> early; // those without a recv, in the order in which they came
	size_t kept = 0;           // bytes of them
	std::chrono::steady_clock::time_point lastTaken;
};

// A Message is the work of one send or receive.
class Message : public c10d::Work {
public:
	// A wait takes the limit at most, if it is given none of its own. Profilers show the title.
	// me sends it to the peer, or receives it from there.
	Message(c10d::OpType op, const char* title, const at::Tensor& tensor, Transfer transfer, std::chrono::milliseconds limit,
	        std::shared_ptr<Hooks> hooks, MemberPtr me, int peer, int tag);
	// The message continues, also if no thread waits for it any more.
	~Message() override;

	// It does not wait for the message. A caller that asks again and again helps as wait does, without Python's lock.
	bool isCompleted() override;
	bool isSuccess() const override { return over && !error; }
	std::exception_ptr exception() const override { return error; }
	int sourceRank() const override { return transfer.status.source; }
	std::vector<at::Tensor> result() override { return {tensor}; }
	// Blocks until the message is received, or the tensor that was sent may be changed.
	bool wait(std::chrono::milliseconds timeout) override;
	// The future has the tensor in a list, as those of collectives.
	c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
	uint64_t getCompletionKey() const { return key; } // overrides that of torch >= 2.15

private:
	friend class Watcher;
	using Lock = std::unique_lock<std::mutex>;
	using Clock = std::chrono::steady_clock;

	// Asks gompi whether it is over, for so long, or waits as long for another thread that asks,
	// and may return sooner. The caller calls announce then, with no lock held.
	bool ask(std::chrono::milliseconds time);
	// Waits for as long until the message is over or the thread that asks gompi asks no more.
	void awaitAsker(Lock& lock, std::chrono::milliseconds time);
	void end(int code);
	std::string late(std::chrono::milliseconds waited) const;
	// Completes the future, if there is one and the message is over: here, or on a thread of its
	// own, since one that waits or asks may hold a lock that callbacks want.
	void announce(bool here);
	std::chrono::milliseconds patience() const;
	static int64_t help(void* self, int64_t waited);
	// Helps if it is not over its patience after the first call.
	void helpIfLate();

	const at::Tensor tensor;
	const std::chrono::milliseconds limit;
	const std::shared_ptr<Hooks> hooks;
	const MemberPtr me;
	const int peer, tag;
	const uint64_t key = Hooks::newKey();
	std::atomic<int> waiting{0};      // threads in wait
	Transfer transfer;                // of the asker, until the message is over
	std::atomic<Clock::rep> asked{0}; // when it was first asked whether it is over

	std::mutex mutex; // guards the asker, the change of over, and the future; no thread waits for gompi with it held
	std::condition_variable changed; // there is no asker any more, or the message is over
	std::thread::id asker;           // the one thread that asks gompi, if there is one
	std::atomic<bool> over{false};
	std::exception_ptr error;
	c10::intrusive_ptr<c10::ivalue::Future> future; // once it was asked for
	bool announced = false;
};

} // namespace gompi_torch

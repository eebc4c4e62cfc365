#include "queue.h"

#include <algorithm>
#include <thread>

#include "fail.h"
#include "future.h"
#include "interrupt.h"
#include "python.h"
#include "tensors.h"

namespace gompi_torch {

std::function<std::string(const StorePtr& store, int rank, int size)> explainMismatch;
std::atomic<bool> toldOfMismatch{false};

namespace {

using Clock = std::chrono::steady_clock;

// A wait that comes so soon after the last call, or after the wait before it, finds little done by
// a thread that is woken. Functional collectives are in Python for as long as a third of it.
constexpr auto soon = std::chrono::microseconds(200);
// The delays of threads that run the queue. A timer that is due earlier than late costs ten times
// as much to set: it is the processor's next event then.
constexpr std::chrono::nanoseconds now{1}, late = std::chrono::milliseconds(5);

// The most bytes of inputs and outputs of a collective that takes no longer than to wake a thread.
constexpr int64_t shortBytes = 128 << 10;

int64_t bytesOf(const std::vector<at::Tensor>& tensors) {
	int64_t n = 0;
	for (auto& t : tensors)
		n += t.numel() * t.element_size();
	return n;
}

thread_local bool waits = false;

} // namespace

Collective::Collective(std::shared_ptr<Queue> queue, c10d::OpType op, const char* title,
                       const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs, std::function<int()> run)
	: c10d::Work(-1, op, title, inputs), isShort(bytesOf(inputs) + bytesOf(outputs) <= shortBytes), queue(std::move(queue)),
	  outputs(std::move(outputs)), run(std::move(run)) {}

bool Collective::wait(std::chrono::milliseconds timeout) {
	if (!over.load() && !queue->wait(*this, timeout))
		fail(c10d::opTypeToString(opType_), " of ", queue->me, " is not over after ", timeout.count(), " ms");
	if (hasFuture.load()) { // another thread completes it now
		python::Unlocked unlocked;
		getFuture()->wait();
	}
	if (!error)
		return true;
	StorePtr store;
	if (code == GOMPI_ERR_MISMATCH && explainMismatch)
		store = queue->storeOfGroup();
	if (!store)
		std::rethrow_exception(error);
	toldOfMismatch = true;
	try {
		std::rethrow_exception(error);
	} catch (std::exception& e) {
		throw std::runtime_error(e.what() + explainMismatch(store, queue->me->rank, queue->me->size));
	}
}

FuturePtr Collective::getFuture() {
	{
		std::lock_guard<std::mutex> lock(queue->mutex);
		if (future)
			return future;
		future = newFuture();
		hasFuture = true;
		if (!over.load()) {
			queue->hurry();
			return future;
		}
	}
	settle(*future, outputs, error);
	return future;
}

bool Collective::isCompleted() {
	queue->askFor(*this);
	return over.load();
}

bool Collective::isSuccess() const {
	queue->askFor(*this);
	return over.load() && !error;
}

std::exception_ptr Collective::exception() const {
	queue->askFor(*this);
	return over.load() ? error : nullptr;
}

// Has a collective run that is asked for again, if it does not yet. torch's flight recorder asks
// for each once.
void Queue::askFor(const Collective& c) {
	if (c.over.load() || !c.asked.exchange(true))
		return;
	Lock lock(mutex);
	hurry();
}

void Queue::waitsForNext(bool does) { waits = does; }

void Queue::push(const c10::intrusive_ptr<Collective>& c) {
	std::lock_guard<std::mutex> lock(mutex);
	if (closed)
		fail("a collective of a group that was destroyed");
	c->promised = std::exchange(waits, false);
	if (!c->promised) {
		auto now = Clock::now();
		if (!queue.empty() && now - left >= soon)
			waitedAtOnce = false;
		left = now;
	}
	queue.push_back(c);
	longs += !c->isShort;
	if (!c->promised || queue.size() > 1)
		leave();
}

void Queue::close() {
	Lock lock(mutex);
	closed = true;
	if (idle > 0)
		findRunner(now); // to end
	hurry(); // who was to wait does not
	waiting++;
	end.wait(lock, [this] { return runsBelow() || (queue.empty() && !running); });
	waiting--;
	auto gone = std::move(store); // a thread that serves ends later, perhaps with the process, in the midst of a write of torch's FileStore
	lock.unlock();
}

StorePtr Queue::storeOfGroup() {
	Lock lock(mutex);
	return store;
}

bool Queue::wait(Collective& c, std::chrono::milliseconds timeout) {
	python::Unlocked unlocked;
	constexpr std::chrono::milliseconds century = std::chrono::hours(24 * 365 * 100);
	const bool forever = timeout == kNoTimeout, runs = forever && !(Interruptible::here() && Interruptible::callsHandlers);
	auto begin = Clock::now(), deadline = begin + (forever ? century : std::min(timeout, century));
	Interruptible scope;
	Lock lock(mutex);
	if (c.isShort && !c.promised)
		waitedAtOnce = begin - left < soon;
	try {
		while (!c.over.load() && Clock::now() < deadline) {
			if (runsBelow())
				fail(c10d::opTypeToString(c.opType_), " of ", me, ": a signal handler waits for it on the thread that runs an earlier collective of the group");
			if (runs && !running && !queue.empty() && !queue.front()->hasFuture) {
				runNext(lock, false);
				Interruptible::rethrow();
				continue;
			}
			hurry();
			if (sleep(lock, deadline)) {
				lock.unlock();
				Interruptible::poll();
				lock.lock();
			}
		}
	} catch (...) {
		if (!lock.owns_lock())
			lock.lock();
		leave();
		throw;
	}
	left = Clock::now();
	leave();
	return c.over.load();
}

// Waits for the end of some collective. It reports whether this is the main thread, and it is time
// to run signal handlers.
bool Queue::sleep(Lock& lock, Clock::time_point deadline) {
	bool handles = Interruptible::here();
	if (handles)
		deadline = std::min(deadline, Clock::now() + std::chrono::milliseconds(Interruptible::period));
	waiting++;
	auto woken = end.wait_until(lock, deadline);
	waiting--;
	return handles && woken == std::cv_status::timeout;
}

// Whether this thread runs a collective, and is in what that has called.
bool Queue::runsBelow() const { return running && runner == std::this_thread::get_id(); }

// Runs the first of the queue. The lock is held before and after. serves says that it is for a
// thread of the queue, which may run callbacks.
void Queue::runNext(Lock& lock, bool serves) {
	PythonWork work;
	auto c = std::move(queue.front());
	queue.pop_front();
	longs -= !c->isShort;
	coming = nobody;
	running = true;
	runner = std::this_thread::get_id();
	lock.unlock();
	auto begin = Clock::now();
	run(*c);
	std::chrono::duration<float, std::milli> took = Clock::now() - begin;
	lock.lock();
	running = false;
	c->over.store(true);
	if (waiting > 0)
		end.notify_all();
	bool settles = c->future.defined();
	if (settles)
		hurry();
	lock.unlock();
	if (!c->error)
		hooks->call(c->key, took.count());
	if (settles && serves)
		settle(*c->future, c->outputs, c->error);
	else if (settles)
		settleElsewhere(c->future, c->outputs, c->error, c);
	c.reset(); // its tensors may be Python's, whose lock a thread may hold that waits for this one
	lock.lock();
}

void Queue::run(Collective& c) {
	try {
		c.code = c.run();
		check(c.code);
	} catch (...) {
		c.error = std::current_exception();
	}
	c.run = nullptr; // and the tensors that it holds
	if (c.recordFunctionEndCallback_)
		c.recordFunctionEndCallback_();
	int none = GOMPI_OK;
	if (c.code != GOMPI_ERR_ARGUMENT)
		failure.compare_exchange_strong(none, c.code);
}

// Has another thread run what is queued, unless a thread that waits will. This one does not.
void Queue::leave() {
	if (longs > 0 || !waitedAtOnce)
		hurry();
	else if (!running && !queue.empty())
		findRunner(late);
}

// Has another thread run what is queued, at once.
void Queue::hurry() {
	if (!running && !queue.empty())
		findRunner(now);
}

// Has another thread look for work after the delay.
void Queue::findRunner(std::chrono::nanoseconds delay) {
	if (delay >= coming)
		return;
	coming = idle > 0 ? delay : now;
	if (idle > 0)
		alarm.set(delay);
	else
		std::thread([self = shared_from_this()] { self->serve(); }).detach();
}

// serve is what threads do until the queue is closed.
void Queue::serve() {
	gompi_set_background(1); // others compute meanwhile
	Lock lock(mutex);
	for (;;) {
		while (!queue.empty() && !running) {
			waitedAtOnce &= !queue.front()->isShort;
			runNext(lock, true);
		}
		if (closed && queue.empty())
			break;
		idle++;
		lock.unlock();
		alarm.wait();
		lock.lock();
		idle--;
	}
	if (idle > 0)
		alarm.set(now); // for the next one
}

} // namespace gompi_torch

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

Collective::Collective(std::shared_ptr<Queue> queue, c10d::OpType op, const char* title,
                       const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs, std::function<int()> run)
	: c10d::Work(-1, op, title, inputs), queue(std::move(queue)), outputs(std::move(outputs)), run(std::move(run)) {}

bool Collective::wait(std::chrono::milliseconds timeout) {
	if (!over.load() && !queue->wait(*this, timeout))
		fail(c10d::opTypeToString(opType_), " is not over after ", timeout.count(), " ms");
	if (!error)
		return true;
	if (code != GOMPI_ERR_MISMATCH || !explainMismatch)
		std::rethrow_exception(error);
	toldOfMismatch = true;
	try {
		std::rethrow_exception(error);
	} catch (std::exception& e) {
		throw std::runtime_error(e.what() + explainMismatch(queue->store, queue->rank, queue->size));
	}
}

FuturePtr Collective::getFuture() {
	{
		std::lock_guard<std::mutex> lock(queue->mutex);
		if (future)
			return future;
		future = newFuture();
		if (!over.load())
			return future;
	}
	settle(*future, outputs, error);
	return future;
}

namespace {

thread_local bool waits = false;

} // namespace

void Queue::waitsForNext(bool does) { waits = does; }

void Queue::push(const c10::intrusive_ptr<Collective>& c) {
	std::lock_guard<std::mutex> lock(mutex);
	if (closed)
		fail("a collective of a group that was destroyed");
	bool alone = queue.empty();
	queue.push_back(c);
	if (!running && !(alone && waits))
		findRunner();
	waits = false;
}

void Queue::close() {
	Lock lock(mutex);
	closed = true;
	work.notify_all();
	if (!running && !queue.empty())
		findRunner(); // who was to wait for it does not
	waiting++;
	end.wait(lock, [this] { return queue.empty() && !running; });
	waiting--;
}

bool Queue::wait(Collective& c, std::chrono::milliseconds timeout) {
	Interruptible::Unlocked unlocked;
	constexpr std::chrono::milliseconds century = std::chrono::hours(24 * 365 * 100);
	bool forever = timeout == kNoTimeout;
	auto deadline = std::chrono::steady_clock::now() + (forever ? century : std::min(timeout, century));
	Interruptible scope;
	Lock lock(mutex);
	try {
		while (!c.over.load() && std::chrono::steady_clock::now() < deadline) {
			if (forever && !running && !queue.empty()) {
				runNext(lock);
				Interruptible::rethrow();
			} else if (sleep(lock, deadline)) {
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
	leave();
	return c.over.load();
}

// Waits for the end of some collective. It reports whether this is the main thread, and it is time to
// run signal handlers.
bool Queue::sleep(Lock& lock, std::chrono::steady_clock::time_point deadline) {
	bool handles = Interruptible::here();
	if (handles)
		deadline = std::min(deadline, std::chrono::steady_clock::now() + std::chrono::milliseconds(Interruptible::period));
	waiting++;
	auto woken = end.wait_until(lock, deadline);
	waiting--;
	return handles && woken == std::cv_status::timeout;
}

// Has another thread run what is queued, since this one waits no more.
void Queue::leave() {
	if (!running && !queue.empty())
		findRunner();
}

// Runs the first of the queue. The lock is held before and after.
void Queue::runNext(Lock& lock) {
	PythonWork work;
	auto c = std::move(queue.front());
	queue.pop_front();
	running = true;
	lock.unlock();
	auto begin = std::chrono::steady_clock::now();
	run(*c);
	std::chrono::duration<float, std::milli> took = std::chrono::steady_clock::now() - begin;
	lock.lock();
	running = false;
	c->over.store(true);
	if (waiting > 0)
		end.notify_all();
	bool settles = c->future.defined();
	if (settles && !queue.empty())
		findRunner();
	lock.unlock();
	if (!c->error)
		hooks->call(c->key, took.count());
	if (settles)
		settle(*c->future, c->outputs, c->error);
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

// Has another thread run the first of the queue.
void Queue::findRunner() {
	if (idle > 0)
		work.notify_one();
	else
		std::thread([self = shared_from_this()] { self->serve(); }).detach();
}

// serve is what threads do until the queue is closed.
void Queue::serve() {
	gompi_set_background(1); // others compute meanwhile
	Lock lock(mutex);
	for (;;) {
		while (!queue.empty() && !running)
			runNext(lock);
		if (closed && queue.empty())
			return;
		idle++;
		work.wait(lock);
		idle--;
	}
}

} // namespace gompi_torch

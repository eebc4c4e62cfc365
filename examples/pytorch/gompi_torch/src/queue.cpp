#include "queue.h"

#include <thread>

#include "tensors.h"

namespace gompi_torch {

std::function<std::string(const std::string& group, int rank, int size)> explainMismatch;

Collective::Collective(std::shared_ptr<Queue> queue, c10d::OpType op, const char* title,
                       std::vector<at::Tensor> outputs, std::function<int()> run)
	: c10d::Work(-1, op, title, outputs), queue(std::move(queue)), outputs(std::move(outputs)), run(std::move(run)) {}

bool Collective::wait(std::chrono::milliseconds timeout) {
	if (!over.load() && !queue->wait(*this, timeout))
		throw std::runtime_error("gompi: " + c10d::opTypeToString(opType_) + " is not over after " + std::to_string(timeout.count()) + " ms");
	if (!error)
		return true;
	if (code != GOMPI_ERR_MISMATCH || !explainMismatch)
		std::rethrow_exception(error);
	try {
		std::rethrow_exception(error);
	} catch (std::exception& e) {
		throw std::runtime_error(e.what() + explainMismatch(queue->group, queue->rank, queue->size));
	}
}

namespace {

void settle(c10::ivalue::Future& future, const std::vector<at::Tensor>& outputs, const std::exception_ptr& error) {
	if (error)
		future.setError(error);
	else
		future.markCompleted(at::IValue(outputs));
}

} // namespace

c10::intrusive_ptr<c10::ivalue::Future> Collective::getFuture() {
	std::lock_guard<std::mutex> lock(queue->mutex);
	if (!future) {
		future = c10::make_intrusive<at::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
		if (over.load())
			settle(*future, outputs, error);
	}
	return future;
}

namespace {

thread_local bool waits = false;

} // namespace

void Queue::waitsForNext(bool does) { waits = does; }

void Queue::push(const c10::intrusive_ptr<Collective>& c) {
	std::lock_guard<std::mutex> lock(mutex);
	TORCH_CHECK(!closed, "gompi: a collective of a group that was destroyed");
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
	bool forever = timeout == kNoTimeout;
	auto deadline = std::chrono::steady_clock::now() + timeout;
	Lock lock(mutex);
	while (!c.over.load()) {
		if (forever && !running && !queue.empty()) {
			runNext(lock);
			continue;
		}
		waiting++;
		auto woken = std::cv_status::no_timeout;
		if (forever)
			end.wait(lock);
		else
			woken = end.wait_until(lock, deadline);
		waiting--;
		if (woken == std::cv_status::timeout && !c.over.load())
			return false;
	}
	if (!running && !queue.empty())
		findRunner();
	return true;
}

// Runs the first of the queue. The lock is held before and after.
void Queue::runNext(Lock& lock) {
	auto c = std::move(queue.front());
	queue.pop_front();
	running = true;
	lock.unlock();
	try {
		c->code = c->run();
		check(c->code);
	} catch (...) {
		c->error = std::current_exception();
	}
	c->run = nullptr; // and the tensors that it holds
	if (c->recordFunctionEndCallback_)
		c->recordFunctionEndCallback_();
	lock.lock();
	running = false;
	c->over.store(true);
	if (waiting > 0)
		end.notify_all();
	if (!c->future)
		return;
	if (!queue.empty())
		findRunner();
	lock.unlock();
	settle(*c->future, c->outputs, c->error);
	c.reset();
	lock.lock();
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

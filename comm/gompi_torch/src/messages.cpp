#include "messages.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <ATen/record_function.h>

#include "fail.h"
#include "future.h"
#include "interrupt.h"
#include "watcher.h"

namespace gompi_torch {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds Messages::sendHelpsAfter, Messages::receiveHelpsAfter;

// A message may be shorter than its tensor, which keeps the rest.
Transfer::Transfer(const at::Tensor& t, bool receives) : numbers(t), receives(receives) { numbers->load(); }

void Transfer::finish(int code) {
	if (receives && code == GOMPI_OK && early)
		takeEarly();
	if (receives && (code == GOMPI_OK || code == GOMPI_ERR_TRUNCATED))
		numbers->store();
	check(code);
	if (receives && status.bytes > numbers->bytes())
		fail("recv: message longer than the buffer from rank ", status.source, " with tag ", status.tag, ": ", status.bytes, " bytes for a tensor of ", numbers->bytes());
}

void Transfer::takeEarly() {
	if (status.type != numbers->type())
		fail("recv: message of another element type from rank ", status.source, " with tag ", status.tag, ": want ", numbers->scalarType());
	if (size_t n = std::min(status.bytes, numbers->bytes()))
		std::memcpy(numbers->data(), early.get(), n);
	early = nullptr;
}

namespace {

// Transfers under way for which no thread can wait any more. Their tensors stay until they are
// over.
class Abandoned {
public:
	void add(Transfer t) {
		std::lock_guard<std::mutex> lock(mutex);
		transfers.push_back(std::move(t));
	}

	void sweep() {
		for (auto& t : takeOver())
			if (t.numbers)
				try {
					t.finish(GOMPI_OK);
				} catch (std::exception&) { // there is no caller to report it to
				}
	}

private:
	// Those that are over. What may be Python's, tensors and copies to them, wants no lock to be held.
	std::list<Transfer> takeOver() {
		std::list<Transfer> over;
		std::lock_guard<std::mutex> lock(mutex);
		for (auto t = transfers.begin(); t != transfers.end();) {
			auto next = std::next(t);
			int done = 0;
			if (gompi_test(&t->request, &done, &t->status) != GOMPI_OK)
				t->receives = false; // nothing has come
			else if (!done) {
				t = next;
				continue;
			}
			over.splice(over.end(), transfers, t);
			t = next;
		}
		return over;
	}

	std::mutex mutex;
	std::list<Transfer> transfers;
};

Abandoned& abandoned() {
	static auto* all = new Abandoned; // it outlives whatever may add to it
	return *all;
}

} // namespace

// The cost of a message that is kept, beside its bytes, about; and how many are taken at once:
// others may come for as long as a rank sends.
constexpr size_t perMessage = 512;
constexpr int atOnce = 64;

// All that there are. A rank that waits in one group may be waited for in another.
struct Messages::All {
	std::mutex mutex;
	std::list<Messages*> list;
};

Messages::All& Messages::all() {
	static auto* one = new All; // groups may outlive main
	return *one;
}

Messages::Messages(gompi_comm comm) : comm(comm) {
	std::lock_guard<std::mutex> lock(all().mutex);
	place = all().list.insert(all().list.end(), this);
}

void Messages::wantPeer(int peer, int ranks, int tag) {
	if (peer < 0 || peer >= ranks)
		fail("a message with rank ", peer, ": want one of the group, 0 to ", ranks - 1);
	if (tag < 0)
		fail("a message with tag ", tag, ": want 0 or more");
}

Transfer Messages::receive(const at::Tensor& t, int from, int tag) {
	Transfer r(t, true);
	std::lock_guard<std::mutex> lock(mutex);
	auto fits = [&](auto& e) { return e.status.tag == tag && (from == GOMPI_ANY_SOURCE || e.status.source == from); };
	auto found = std::find_if(early.begin(), early.end(), fits);
	if (found == early.end()) {
		check(gompi_irecv(comm, r.numbers->data(), r.numbers->count(), r.numbers->type(), from, tag, &r.request));
		return r;
	}
	r.early = std::move(found->early);
	r.request = found->request;
	r.status = found->status;
	kept -= r.status.bytes + perMessage;
	early.erase(found);
	return r;
}

void Messages::help() {
	python::Unlocked unlocked; // what comes may be long, and another thread may be receiving it
	std::lock_guard<std::mutex> lock(all().mutex);
	for (auto* m : all().list) {
		std::lock_guard<std::mutex> lock(m->mutex);
		for (int i = 0; i < atOnce && m->takeOne(); i++) {
		}
	}
}

// Begins to receive the oldest message without a recv, if there is one that may be kept.
bool Messages::takeOne() {
	auto now = Clock::now();
	if (kept >= mostKept && now - lastTaken < std::chrono::seconds(1))
		return false;
	Transfer e;
	int found = 0;
	if (gompi_iprobe(comm, GOMPI_ANY_SOURCE, GOMPI_ANY_TAG, &found, &e.status) != GOMPI_OK || !found)
		return false; // or the send that waits is told why
	auto s = e.status;
	e.early.reset(new (std::nothrow) char[s.bytes + 1]); // none of Python's may run now, as it may to make a tensor
	if (!e.early)
		return false; // there is no memory for it: it stays at its sender
	if (gompi_irecv(comm, e.early.get(), s.count, static_cast<gompi_type>(s.type), s.source, s.tag, &e.request) != GOMPI_OK)
		return false;
	early.push_back(std::move(e));
	kept += s.bytes + perMessage;
	lastTaken = now;
	return true;
}

Messages::~Messages() {
	{
		std::lock_guard<std::mutex> lock(all().mutex);
		all().list.erase(place);
	}
	{
		std::lock_guard<std::mutex> lock(mutex);
		for (auto& e : early)
			abandoned().add(std::move(e));
		early.clear();
	}
	abandoned().sweep();
}

namespace {

// More than a clock can be asked to wait for is as good as for ever.
constexpr milliseconds century = std::chrono::hours(24 * 365 * 100);

milliseconds bounded(milliseconds time) { return std::min(time, century); }

struct Counted {
	explicit Counted(std::atomic<int>& n) : n(n) { n++; }
	~Counted() { n--; }
	std::atomic<int>& n;
};

// Whether a profiler runs. Without one no memory is allocated for it.
bool shows() { return at::hasCallbacks(); }

} // namespace

Message::Message(c10d::OpType op, const char* title, const at::Tensor& tensor, Transfer transfer, milliseconds limit,
                 std::shared_ptr<Hooks> hooks, MemberPtr me, int peer, int tag)
	: c10d::Work(-1, op, shows() ? title : nullptr, shows() ? std::vector<at::Tensor>{tensor} : std::vector<at::Tensor>()), tensor(tensor), limit(limit), hooks(std::move(hooks)), me(std::move(me)), peer(peer), tag(tag), transfer(std::move(transfer)) {}

Message::~Message() {
	if (!over)
		abandoned().add(std::move(transfer));
	abandoned().sweep();
}

bool Message::isCompleted() {
	if (!over)
		helpIfLate();
	if (ask(milliseconds(0)))
		announce(false);
	return over;
}

// How long it waits before it helps.
milliseconds Message::patience() const { return opType_ == c10d::OpType::SEND ? Messages::sendHelpsAfter : Messages::receiveHelpsAfter; }

// A wait asks gompi for this, too: it has waited for that many milliseconds, and returns when to do
// it again.
int64_t Message::help(void* self, int64_t waited) {
	auto patience = static_cast<Message*>(self)->patience().count();
	if (waited < patience)
		return patience - waited;
	Messages::help();
	return std::clamp<int64_t>(waited / 4, 1, 20);
}

bool Message::wait(milliseconds timeout) {
	auto whole = bounded(timeout != kNoTimeout ? timeout : limit.count() > 0 ? limit : century);
	auto begin = Clock::now();
	{
		Interruptible scope(help, this);
		Counted one(waiting);
		while (!over) {
			auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
			if (waited >= whole)
				fail(late(whole));
			ask(whole - waited);
			Interruptible::rethrow();
		}
	}
	announce(false);
	if (future) { // a thread completes it now
		python::Unlocked unlocked;
		future->wait();
	}
	if (error)
		std::rethrow_exception(error);
	return true;
}

std::string Message::late(milliseconds waited) const {
	auto with = peer == GOMPI_ANY_SOURCE ? std::string("any rank") : "rank " + words(peer);
	return c10d::opTypeToString(opType_) + " of " + words(me) + (opType_ == c10d::OpType::SEND ? " to " : " from ") + with +
	       " with tag " + words(tag) + " is not over after " + words(waited.count()) + " ms";
}

void Message::helpIfLate() {
	auto now = Clock::now().time_since_epoch();
	Clock::rep first = 0;
	if (!asked.compare_exchange_strong(first, now.count()) && now - Clock::duration(first) >= patience())
		Messages::help();
}

bool Message::ask(milliseconds time) {
	const auto me = std::this_thread::get_id();
	{
		Lock lock(mutex);
		if (!over && asker != std::thread::id())
			awaitAsker(lock, time);
		if (over || asker != std::thread::id())
			return over;
		asker = me;
	}
	int done = 0;
	int code = time.count() > 0 ? gompi_wait(&transfer.request, time.count(), &transfer.status)
	                            : gompi_test(&transfer.request, &done, &transfer.status);
	if (transfer.request == GOMPI_REQUEST_NULL || (code != GOMPI_OK && code != GOMPI_ERR_TIMEOUT && code != GOMPI_ERR_INTERRUPTED))
		end(code);
	Lock lock(mutex);
	asker = std::thread::id();
	changed.notify_all();
	return over;
}

void Message::awaitAsker(Lock& lock, milliseconds time) {
	if (time.count() == 0)
		return; // it does what is to be done
	if (asker == std::this_thread::get_id())
		fail(c10d::opTypeToString(opType_), ": a signal handler waits for the message for which the thread waited when the signal came");
	changed.wait_for(lock, std::min(time, milliseconds(Interruptible::period)), [&] { return over || asker == std::thread::id(); });
	lock.unlock();
	Interruptible::poll();
	lock.lock();
}

void Message::end(int code) {
	std::exception_ptr failure;
	try {
		transfer.finish(code);
	} catch (...) {
		failure = std::current_exception();
	}
	if (recordFunctionEndCallback_)
		recordFunctionEndCallback_();
	{
		Lock lock(mutex);
		error = failure;
		over = true;
	}
	if (!failure)
		hooks->call(key, std::nullopt);
}

void Message::announce(bool here) {
	{
		Lock lock(mutex);
		if (!over || !future || announced)
			return;
		announced = true;
	}
	if (here)
		settle(*future, {tensor}, error);
	else
		settleElsewhere(future, {tensor}, error, c10::intrusive_ptr<Message>::unsafe_reclaim_from_nonowning(this));
}

FuturePtr Message::getFuture() {
	bool watch;
	{
		Lock lock(mutex);
		if (future)
			return future;
		future = newFuture();
		watch = !over;
	}
	if (watch)
		Watcher::get().add(c10::intrusive_ptr<Message>::unsafe_reclaim_from_nonowning(this));
	else
		announce(true); // which has no callbacks yet
	return future;
}

} // namespace gompi_torch

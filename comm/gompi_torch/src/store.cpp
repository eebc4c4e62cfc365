#include "store.h"

#include <cstring>
#include <list>
#include <thread>

#include "fail.h"
#include "tensors.h"

namespace gompi_torch {

namespace {

using Bytes = Store::Bytes;
using Keys = std::vector<std::string>;

// Other ranks send rank 0 questions, each with the tag of its answer. Every question is answered
// once: the length of the answer in one message, and the answer in another.
constexpr int questionTag = 0;
constexpr int lastTag = 1 << 30;

enum class Ask : uint8_t { Set, CompareSet, Get, Add, Delete, Check, Count, Wait, GiveUp };

// What gives up waiting gets this in place of an answer: no answer is as long.
constexpr uint64_t gaveUp = ~uint64_t(0);

// A Writer and a Reader put numbers and strings into bytes.
struct Writer {
	Bytes bytes;

	Writer& number(int64_t n) {
		auto* p = reinterpret_cast<const uint8_t*>(&n);
		bytes.insert(bytes.end(), p, p + sizeof n);
		return *this;
	}
	template <typename T> Writer& string(const T& s) {
		number(s.size());
		bytes.insert(bytes.end(), s.begin(), s.end());
		return *this;
	}
	Writer& strings(const Keys& keys) {
		number(keys.size());
		for (auto& k : keys)
			string(k);
		return *this;
	}
};

struct Reader {
	const Bytes& bytes;
	size_t at = 0;

	int64_t number() {
		int64_t n;
		std::memcpy(&n, bytes.data() + at, sizeof n);
		at += sizeof n;
		return n;
	}
	template <typename T> T string() {
		size_t n = number();
		auto from = bytes.begin() + at;
		at += n;
		return T(from, from + n);
	}
	Keys strings() {
		Keys keys(number());
		for (auto& k : keys)
			k = string<std::string>();
		return keys;
	}
};

Bytes numberBytes(int64_t n) { return Writer().number(n).bytes; }

// Sends an answer. If the rank is lost, nobody waits for it.
void answer(gompi_comm comm, int rank, int tag, const Bytes* bytes) {
	uint64_t n = bytes ? bytes->size() : gaveUp;
	if (gompi_send(comm, &n, 1, GOMPI_UINT64, rank, tag) == GOMPI_OK && bytes)
		gompi_send(comm, bytes->data(), bytes->size(), GOMPI_UINT8, rank, tag);
}

} // namespace

namespace {

// How many Tables serve other ranks.
struct Servers {
	std::mutex mutex;
	std::condition_variable ended;
	int count = 0;
};

Servers& servers() {
	static auto* all = new Servers; // threads outlive main
	return *all;
}

} // namespace

// A Table is used by threads of rank 0, and serves the questions of other ranks: until these have closed
// their stores, also when that of rank 0 is closed. Who comes first out of a barrier over the store may
// close it while others still ask whether all have come.
class Table : public std::enable_shared_from_this<Table> {
public:
	explicit Table(std::shared_ptr<const Communicator> c) : owned(std::move(c)), comm(owned->get()) {}

	// Serves in a thread.
	void start() {
		std::lock_guard<std::mutex> lock(servers().mutex);
		std::thread([self = shared_from_this()]() mutable {
			self->serve();
			self.reset();
			std::lock_guard<std::mutex> lock(servers().mutex);
			servers().count--;
			servers().ended.notify_all();
		}).detach();
		servers().count++;
	}

	// Does what a question asks for, other than to wait.
	Bytes perform(const Bytes& question) {
		std::list<Waiter> met;
		Bytes result;
		{
			std::lock_guard<std::mutex> lock(mutex);
			result = change(question);
			for (auto w = waiters.begin(); w != waiters.end();) {
				auto next = std::next(w);
				if (has(w->keys))
					met.splice(met.end(), waiters, w);
				w = next;
			}
			for (auto& w : met)
				w.answer = valueFor(w);
		}
		changed.notify_all();
		for (auto& w : met)
			answer(comm, w.rank, w.tag, &w.answer);
		return result;
	}

	// Waits until there are all keys, and returns the value of the first if it is wanted.
	bool await(const Keys& keys, bool value, Store::Milliseconds timeout, Bytes& result) {
		std::unique_lock<std::mutex> lock(mutex);
		auto ready = [&] { return has(keys); };
		if (timeout == Store::kNoTimeout)
			changed.wait(lock, ready);
		else if (!changed.wait_for(lock, timeout, ready))
			return false;
		if (value)
			result = values[keys[0]];
		return true;
	}

private:
	struct Waiter {
		int rank, tag;
		bool value; // that of the first key is wanted
		Keys keys;
		Bytes answer;
	};

	void serve() {
		for (;;) {
			gompi_status s;
			if (gompi_probe(comm, GOMPI_ANY_SOURCE, questionTag, &s) != GOMPI_OK)
				return;
			Bytes question(s.count);
			if (gompi_recv(comm, question.data(), question.size(), GOMPI_UINT8, s.source, questionTag, &s) != GOMPI_OK)
				return;
			Reader r{question};
			int tag = r.number();
			hear(s.source, tag, Bytes(question.begin() + r.at, question.end()));
		}
	}

	void hear(int rank, int tag, const Bytes& question) {
		Reader r{question};
		switch (auto ask = static_cast<Ask>(r.number())) {
		case Ask::Get:
		case Ask::Wait: {
			Waiter w{rank, tag, ask == Ask::Get, r.strings(), {}};
			{
				std::lock_guard<std::mutex> lock(mutex);
				if (!has(w.keys)) {
					waiters.push_back(std::move(w));
					return;
				}
				w.answer = valueFor(w);
			}
			answer(comm, rank, tag, &w.answer);
			return;
		}
		case Ask::GiveUp:
			if (forget(rank, tag))
				answer(comm, rank, tag, nullptr);
			return;
		default:
			auto result = perform(question);
			answer(comm, rank, tag, &result);
		}
	}

	// Forgets a waiter, and reports whether it was waiting still.
	bool forget(int rank, int tag) {
		std::lock_guard<std::mutex> lock(mutex);
		size_t before = waiters.size();
		waiters.remove_if([&](auto& w) { return w.rank == rank && w.tag == tag; });
		return waiters.size() < before;
	}

	bool has(const Keys& keys) {
		for (auto& k : keys)
			if (!values.count(k))
				return false;
		return true;
	}

	Bytes valueFor(const Waiter& w) { return w.value ? values[w.keys[0]] : Bytes(); }

	Bytes change(const Bytes& question) {
		Reader r{question};
		auto ask = static_cast<Ask>(r.number());
		switch (ask) {
		case Ask::Count: return numberBytes(values.size());
		case Ask::Check: return numberBytes(has(r.strings()));
		default: break;
		}
		auto key = r.string<std::string>();
		switch (ask) {
		case Ask::Set: values[key] = r.string<Bytes>(); return {};
		case Ask::Add: return add(key, r.number());
		case Ask::Delete: return numberBytes(values.erase(key));
		default: break;
		}
		auto expected = r.string<Bytes>();
		return compareSet(key, expected, r.string<Bytes>());
	}

	// The number is stored as text, so that get() returns what that of other stores does.
	Bytes add(const std::string& key, int64_t n) {
		auto& v = values[key];
		n += std::strtoll(std::string(v.begin(), v.end()).c_str(), nullptr, 10);
		auto text = std::to_string(n);
		v.assign(text.begin(), text.end());
		return numberBytes(n);
	}

	Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) {
		auto at = values.find(key);
		if (at == values.end() && !expected.empty())
			return expected;
		if (at != values.end() && at->second != expected)
			return at->second;
		return values[key] = desired;
	}

	const std::shared_ptr<const Communicator> owned;
	const gompi_comm comm; // of owned
	std::mutex mutex; // guards the table and the waiters
	std::condition_variable changed;
	std::map<std::string, Bytes> values;
	std::list<Waiter> waiters;
};

Store::Store(Communicator c, int rank, int size) : shared(std::make_shared<Shared>(std::move(c))) {
	if (rank == 0)
		shared->table = std::make_shared<Table>(shared->comm);
	if (rank == 0 && size > 1)
		shared->table->start();
}

void Store::awaitOthers() {
	std::unique_lock<std::mutex> lock(servers().mutex);
	servers().ended.wait(lock, [] { return servers().count == 0; });
}

// Sends a question and returns true and the answer, or false if timeout has passed. Only those that
// wait for keys take long.
bool Store::ask(const Bytes& question, Milliseconds timeout, Bytes& result) {
	const gompi_comm comm = shared->comm->get();
	int tag;
	{
		std::lock_guard<std::mutex> lock(shared->mutex);
		tag = shared->next = shared->next % lastTag + 1;
	}
	auto put = [&](const Bytes& q) {
		Bytes message = numberBytes(tag);
		message.insert(message.end(), q.begin(), q.end());
		gompi_torch::check(gompi_send(comm, message.data(), message.size(), GOMPI_UINT8, 0, questionTag));
	};
	put(question);
	uint64_t n;
	gompi_request r;
	gompi_torch::check(gompi_irecv(comm, &n, 1, GOMPI_UINT64, 0, tag, &r));
	int code = timeout == kNoTimeout ? gompi_wait(&r, nullptr) : gompi_wait_for(&r, timeout.count(), nullptr);
	if (code == GOMPI_ERR_TIMEOUT) {
		put(numberBytes(static_cast<int64_t>(Ask::GiveUp)));
		code = gompi_wait(&r, nullptr);
	}
	gompi_torch::check(code);
	if (n == gaveUp)
		return false;
	result.resize(n);
	gompi_torch::check(gompi_recv(comm, result.data(), n, GOMPI_UINT8, 0, tag, nullptr));
	return true;
}

// Does what a question asks for, other than to wait.
Bytes Store::perform(const Bytes& question) {
	if (shared->table)
		return shared->table->perform(question);
	Bytes result;
	ask(question, kNoTimeout, result);
	return result;
}

namespace {

Writer question(Ask ask) {
	Writer w;
	w.number(static_cast<int64_t>(ask));
	return w;
}

std::string list(const Keys& keys) {
	std::string all;
	for (auto& k : keys)
		all += (all.empty() ? "key \"" : ", \"") + k + "\"";
	return all;
}

} // namespace

void Store::set(const std::string& key, const Bytes& value) {
	auto q = question(Ask::Set).string(key).string(value).bytes;
	perform(q);
}

Bytes Store::compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) {
	auto q = question(Ask::CompareSet).string(key).string(expected).string(desired).bytes;
	return perform(q);
}

int64_t Store::add(const std::string& key, int64_t value) {
	auto q = question(Ask::Add).string(key).number(value).bytes;
	auto a = perform(q);
	return Reader{a}.number();
}

bool Store::deleteKey(const std::string& key) {
	auto q = question(Ask::Delete).string(key).bytes;
	auto a = perform(q);
	return Reader{a}.number() != 0;
}

bool Store::check(const Keys& keys) {
	auto q = question(Ask::Check).strings(keys).bytes;
	auto a = perform(q);
	return Reader{a}.number() != 0;
}

int64_t Store::getNumKeys() {
	auto q = question(Ask::Count).bytes;
	auto a = perform(q);
	return Reader{a}.number();
}

Bytes Store::get(const std::string& key) { return await({key}, true, timeout_); }

void Store::wait(const Keys& keys, const Milliseconds& timeout) { await(keys, false, timeout); }

Bytes Store::await(const Keys& keys, bool value, Milliseconds timeout) {
	Bytes result;
	bool met = shared->table ? shared->table->await(keys, value, timeout, result)
	                         : ask(question(value ? Ask::Get : Ask::Wait).strings(keys).bytes, timeout, result);
	if (!met)
		fail("store: waited ", timeout.count(), " ms for ", list(keys));
	return result;
}

} // namespace gompi_torch

// The keys and values of a store, in rank 0, and the questions by which other ranks get at them.
#pragma once

#include <cstring>
#include <deque>
#include <list>
#include <set>
#include <thread>

#include "store.h"

namespace gompi_torch {

using Bytes = Store::Bytes;
using Keys = std::vector<std::string>;

// Other ranks send rank 0 questions, each with the tag of its answer. Every question is answered
// once: the length of the answer in one message, and the answer in another.
constexpr int questionTag = 0;
constexpr int lastTag = 1 << 30;

enum class Ask : uint8_t {
	// Those that wait until there are keys,
	Wait, Get, MultiGet, Pop,
	// and those that do not.
	GiveUp, Set, CompareSet, Add, Append, MultiSet, Delete, Check, Count, List, Push, TryPop, Length
};

// What gives up waiting, or waits in vain, gets this in place of an answer: no answer is as long.
constexpr uint64_t gaveUp = ~uint64_t(0), inVain = gaveUp - 1;

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
	template <typename T> Writer& strings(const std::vector<T>& all) {
		number(all.size());
		for (auto& s : all)
			string(s);
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
	template <typename T> std::vector<T> strings() {
		std::vector<T> all(number());
		for (auto& s : all)
			s = string<T>();
		return all;
	}
	Keys keys() { return strings<std::string>(); }
};

inline Bytes numberBytes(int64_t n) { return Writer().number(n).bytes; }

// Sends a number in place of an answer. If the rank is lost, no rank waits for it.
inline bool answer(gompi_comm comm, int rank, int tag, uint64_t n) {
	return gompi_send(comm, &n, 1, GOMPI_UINT64, rank, tag) == GOMPI_OK;
}

inline void answer(gompi_comm comm, int rank, int tag, const Bytes& bytes) {
	if (answer(comm, rank, tag, bytes.size()))
		gompi_send(comm, bytes.data(), bytes.size(), GOMPI_UINT8, rank, tag);
}

// The Tables that serve other ranks.
struct Servers {
	std::mutex mutex;
	std::condition_variable ended;
	std::set<Table*> tables;
};

inline Servers& servers() {
	static auto* all = new Servers; // threads outlive main
	return *all;
}

// A Table is used by threads of rank 0, and serves the questions of other ranks: until these have
// closed their stores, also when rank 0's is closed. The first rank out of a barrier over the store
// may close it while others still ask whether all have come.
class Table : public std::enable_shared_from_this<Table> {
public:
	Table(std::shared_ptr<const Communicator> c, int size) : owned(std::move(c)), comm(owned->get()), size(size) {}

	// Serves in a thread.
	void start() {
		std::lock_guard<std::mutex> lock(servers().mutex);
		std::thread([self = shared_from_this()]() mutable {
			self->serve();
			{
				std::lock_guard<std::mutex> lock(servers().mutex);
				servers().tables.erase(self.get());
			}
			self.reset();
			servers().ended.notify_all();
		}).detach();
		servers().tables.insert(this);
	}

	// Does what a question asks for, other than to wait.
	Bytes perform(const Bytes& question) {
		std::vector<WaiterPtr> met;
		Bytes result;
		{
			std::lock_guard<std::mutex> lock(mutex);
			result = change(question);
			for (auto w = waiters.begin(); w != waiters.end();) {
				if (!take(**w)) {
					++w;
					continue;
				}
				met.push_back(std::move(*w));
				w = waiters.erase(w);
			}
		}
		changed.notify_all();
		for (auto& w : met)
			if (w->rank != 0)
				answer(comm, w->rank, w->tag, w->answer);
		return result;
	}

	// Waits for what a question of rank 0's waits for, and returns false if timeout has passed.
	bool await(const Bytes& question, Store::Milliseconds timeout, Bytes& result) {
		std::unique_lock<std::mutex> lock(mutex);
		auto w = waiter(0, 0, question);
		auto met = [&] { return w->met; };
		if (!take(*w))
			waiters.push_back(w);
		if (timeout == Store::kNoTimeout)
			changed.wait(lock, met);
		else if (!changed.wait_for(lock, timeout, met)) {
			waiters.remove(w);
			return false;
		}
		result = std::move(w->answer);
		return true;
	}

	// Ends all waits if no rank can set keys any more: all but rank 0, which has ended, have left,
	// or wait and have asked nothing since the last call. A rank may still do so on another thread,
	// but with torch's store all would have failed by now.
	void endInVain() {
		std::list<WaiterPtr> all;
		{
			std::lock_guard<std::mutex> lock(mutex);
			bool quiet = asked == askedBefore;
			askedBefore = asked;
			std::set<int> waiting;
			for (auto& w : waiters)
				waiting.insert(w->rank);
			for (int rank = 1; quiet && rank < size; rank++)
				quiet = waiting.count(rank) || hasLeft(rank);
			if (!quiet)
				return;
			all.swap(waiters);
		}
		for (auto& w : all)
			answer(comm, w->rank, w->tag, inVain);
	}

private:
	struct Waiter {
		int rank, tag;
		Ask ask;
		Keys keys;
		bool met;
		Bytes answer;
	};
	using WaiterPtr = std::shared_ptr<Waiter>;

	static WaiterPtr waiter(int rank, int tag, const Bytes& question) {
		Reader r{question};
		auto ask = static_cast<Ask>(r.number());
		return std::make_shared<Waiter>(Waiter{rank, tag, ask, r.keys(), false, {}});
	}

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
		auto ask = static_cast<Ask>(Reader{question}.number());
		if (ask > Ask::GiveUp) {
			answer(comm, rank, tag, perform(question));
			return;
		}
		WaiterPtr w;
		{
			std::lock_guard<std::mutex> lock(mutex);
			asked++;
			if (ask == Ask::GiveUp && !forget(rank, tag))
				return;
			if (ask != Ask::GiveUp) {
				w = waiter(rank, tag, question);
				if (!take(*w)) {
					waiters.push_back(w);
					return;
				}
			}
		}
		if (w)
			answer(comm, rank, tag, w->answer);
		else
			answer(comm, rank, tag, gaveUp);
	}

	// Forgets a waiter, and reports whether it was waiting still.
	bool forget(int rank, int tag) {
		size_t before = waiters.size();
		waiters.remove_if([&](auto& w) { return w->rank == rank && w->tag == tag; });
		return waiters.size() < before;
	}

	bool hasLeft(int rank) {
		int found;
		return gompi_iprobe(comm, rank, questionTag, &found, nullptr) == GOMPI_ERR_LEFT;
	}

	bool has(const Keys& keys) {
		for (auto& k : keys)
			if (!values.count(k) && !queues.count(k))
				return false;
		return true;
	}

	// The value of a queue is empty, as in torch's store.
	Bytes value(const std::string& key) {
		auto at = values.find(key);
		return at == values.end() ? Bytes() : at->second;
	}

	// Gives a waiter its answer, if there is what it waits for.
	bool take(Waiter& w) {
		w.met = w.ask == Ask::Pop ? queues.count(w.keys[0]) : has(w.keys);
		if (!w.met)
			return false;
		std::vector<Bytes> all;
		switch (w.ask) {
		case Ask::Get: w.answer = value(w.keys[0]); break;
		case Ask::Pop: w.answer = pop(w.keys[0]); break;
		case Ask::MultiGet:
			for (auto& k : w.keys)
				all.push_back(value(k));
			w.answer = Writer().strings(all).bytes;
			break;
		default: break;
		}
		return true;
	}

	Bytes pop(const std::string& key) {
		auto at = queues.find(key);
		Bytes first = std::move(at->second.front());
		at->second.pop_front();
		if (at->second.empty())
			queues.erase(at);
		return first;
	}

	Bytes change(const Bytes& question) {
		asked++;
		Reader r{question};
		auto ask = static_cast<Ask>(r.number());
		switch (ask) {
		case Ask::Count: return numberBytes(values.size());
		case Ask::Check: return numberBytes(has(r.keys()));
		case Ask::List: return listed();
		case Ask::MultiSet:
			for (auto& k : r.keys())
				values[k] = r.string<Bytes>();
			return {};
		default: break;
		}
		auto key = r.string<std::string>();
		switch (ask) {
		case Ask::Add: return add(key, r.number());
		case Ask::Delete: return numberBytes(values.erase(key));
		case Ask::Length: return numberBytes(queues.count(key) ? queues[key].size() : 0);
		case Ask::TryPop: return queues.count(key) ? Writer().number(1).string(pop(key)).bytes : numberBytes(0);
		default: break;
		}
		auto bytes = r.string<Bytes>();
		switch (ask) {
		case Ask::Set: values[key] = bytes; return {};
		case Ask::Append: values[key].insert(values[key].end(), bytes.begin(), bytes.end()); return {};
		case Ask::Push: queues[key].push_back(bytes); return {};
		default: return compareSet(key, bytes, r.string<Bytes>());
		}
	}

	Bytes listed() {
		Keys keys;
		for (auto& [key, _] : values)
			keys.push_back(key);
		return Writer().strings(keys).bytes;
	}

	// The number is stored as text, so that get() returns what that of other stores does. The second
	// part of the answer is what stood there, if that was no number.
	Bytes add(const std::string& key, int64_t n) {
		auto old = value(key);
		std::string text(old.begin(), old.end());
		char* end;
		n += std::strtoll(text.c_str(), &end, 10);
		if (!text.empty() && end == text.c_str())
			return Writer().number(0).string(text).bytes;
		text = std::to_string(n);
		values[key].assign(text.begin(), text.end());
		return Writer().number(n).string(Bytes()).bytes;
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
	const int size;
	std::mutex mutex; // guards what follows
	std::condition_variable changed;
	std::map<std::string, Bytes> values;
	std::map<std::string, std::deque<Bytes>> queues; // none is empty
	std::list<WaiterPtr> waiters;
	uint64_t asked = 0, askedBefore = 0; // how many questions, now and at the last endInVain
};

} // namespace gompi_torch

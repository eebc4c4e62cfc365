// The store of a job: keys and values that all ranks see, as in c10d's TCPStore.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "communicator.h"

namespace gompi_torch {

// A Table has the keys. It lies in rank 0.
class Table;

// A Store of the ranks of a communicator of its own. Rank 0 has all keys, and a thread that answers
// the others. Calls that wait for keys do so for the timeout at most. Its clones have the same
// keys, each a timeout of its own; the communicator is freed with the last of them.
class Store : public c10d::Store {
public:
	using Bytes = std::vector<uint8_t>;
	using Milliseconds = std::chrono::milliseconds;

	Store(Communicator comm, int rank, int size);
	// Blocks until the other ranks need no store of this process any more: they have closed it, or
	// left, or it is broken. If all of them wait for keys, which no rank can set then, they have an
	// error.
	static void awaitOthers();

	void set(const std::string& key, const Bytes& value) override;
	Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) override;
	Bytes get(const std::string& key) override;
	int64_t add(const std::string& key, int64_t value) override;
	bool deleteKey(const std::string& key) override;
	bool check(const std::vector<std::string>& keys) override;
	int64_t getNumKeys() override;
	void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
	void wait(const std::vector<std::string>& keys, const Milliseconds& timeout) override;
	// These override those of later versions than 1.13.
	c10::intrusive_ptr<c10d::Store> clone() { return c10::make_intrusive<Store>(*this); }
	bool hasExtendedApi() const { return true; }
	void append(const std::string& key, const Bytes& value);
	std::vector<Bytes> multiGet(const std::vector<std::string>& keys);
	void multiSet(const std::vector<std::string>& keys, const std::vector<Bytes>& values);
	void queuePush(const std::string& key, const Bytes& value);
	Bytes queuePop(const std::string& key, bool block);
	int64_t queueLen(const std::string& key);
	std::vector<std::string> listKeys();

private:
	// What clones share: the tags of answers, too, which come to the rank, whichever clone asks.
	struct Shared {
		explicit Shared(Communicator c) : comm(std::make_shared<Communicator>(std::move(c))) {}

		const std::shared_ptr<const Communicator> comm; // of the table's thread, too
		std::shared_ptr<Table> table; // of rank 0
		std::mutex mutex;             // guards next
		int next = 0;                 // tag of the next answer
	};

	bool ask(const Bytes& question, Milliseconds timeout, Bytes& result);
	Bytes perform(const Bytes& question);
	Bytes await(const Bytes& question, Milliseconds timeout);

	const std::shared_ptr<Shared> shared;
};

} // namespace gompi_torch

#include "table.h"

#include <torch/version.h>

namespace gompi_torch {

namespace {

// Errors are of the types that those of torch's TCPStore have, where torch has types for them.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 6)
using StoreError = c10::DistStoreError;
using NetworkError = c10::DistNetworkError;
#else
using StoreError = std::runtime_error;
using NetworkError = std::runtime_error;
#endif
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 8)
using EmptyError = c10::DistQueueEmptyError;
#else
using EmptyError = StoreError;
#endif

template <typename Error> [[noreturn]] void refuse(const std::string& why) {
	std::string s = "gompi: store: " + why;
	if constexpr (std::is_same<Error, std::runtime_error>::value)
		throw Error(s);
	else
		throw Error({"gompi_torch::Store", __FILE__, __LINE__}, s);
}

// Fails if a message to or from rank 0 has failed.
void reach(int code) {
	if (code != GOMPI_OK)
		refuse<NetworkError>(gompi_error());
}

int64_t first(const Bytes& answer) { return Reader{answer}.number(); }

Writer question(Ask ask) { return Writer().number(static_cast<int64_t>(ask)); }

// The keys that a question waits for, in words.
std::string waitsFor(const Bytes& question) {
	Reader r{question};
	r.number();
	return words(r.keys());
}

} // namespace

Store::Store(Communicator c, int rank, int size) : shared(std::make_shared<Shared>(std::move(c))) {
	if (rank == 0)
		shared->table = std::make_shared<Table>(shared->comm, size);
	if (rank == 0 && size > 1)
		shared->table->start();
}

void Store::awaitOthers() {
	std::unique_lock<std::mutex> lock(servers().mutex);
	auto none = [] { return servers().tables.empty(); };
	while (!servers().ended.wait_for(lock, std::chrono::seconds(1), none))
		for (auto* table : servers().tables)
			table->endInVain();
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
		reach(gompi_send(comm, message.data(), message.size(), GOMPI_UINT8, 0, questionTag));
	};
	put(question);
	uint64_t n;
	gompi_request r;
	reach(gompi_irecv(comm, &n, 1, GOMPI_UINT64, 0, tag, &r));
	int code = gompi_wait(&r, timeout == kNoTimeout ? 0 : std::max<int64_t>(timeout.count(), 1), nullptr);
	if (code == GOMPI_ERR_TIMEOUT) {
		put(numberBytes(static_cast<int64_t>(Ask::GiveUp)));
		code = gompi_wait(&r, 0, nullptr);
	}
	reach(code);
	if (n == gaveUp)
		return false;
	if (n == inVain)
		refuse<NetworkError>("rank 0, which has the store, has ended, and all others that have not wait for keys; this one for " + waitsFor(question));
	result.resize(n);
	reach(gompi_recv(comm, result.data(), n, GOMPI_UINT8, 0, tag, nullptr));
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

// Does what a question asks for that waits.
Bytes Store::await(const Bytes& question, Milliseconds timeout) {
	Bytes result;
	bool met = shared->table ? shared->table->await(question, timeout, result) : ask(question, timeout, result);
	if (!met)
		refuse<StoreError>("wait timeout after " + std::to_string(timeout.count()) + "ms, keys: " + waitsFor(question));
	return result;
}

void Store::set(const std::string& key, const Bytes& value) { perform(question(Ask::Set).string(key).string(value).bytes); }

Bytes Store::compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) {
	return perform(question(Ask::CompareSet).string(key).string(expected).string(desired).bytes);
}

int64_t Store::add(const std::string& key, int64_t value) {
	auto a = perform(question(Ask::Add).string(key).number(value).bytes);
	Reader r{a};
	auto sum = r.number();
	auto no = r.string<std::string>();
	if (!no.empty())
		refuse<StoreError>("add to key \"" + key + "\", which is \"" + no + "\": want a number there");
	return sum;
}

bool Store::deleteKey(const std::string& key) { return first(perform(question(Ask::Delete).string(key).bytes)) != 0; }

bool Store::check(const Keys& keys) { return first(perform(question(Ask::Check).strings(keys).bytes)) != 0; }

int64_t Store::getNumKeys() { return first(perform(question(Ask::Count).bytes)); }

Bytes Store::get(const std::string& key) { return await(question(Ask::Get).strings(Keys{key}).bytes, timeout_); }

void Store::wait(const Keys& keys, const Milliseconds& timeout) { await(question(Ask::Wait).strings(keys).bytes, timeout); }

void Store::append(const std::string& key, const Bytes& value) { perform(question(Ask::Append).string(key).string(value).bytes); }

std::vector<Bytes> Store::multiGet(const Keys& keys) {
	auto a = await(question(Ask::MultiGet).strings(keys).bytes, timeout_);
	return Reader{a}.strings<Bytes>();
}

void Store::multiSet(const Keys& keys, const std::vector<Bytes>& values) {
	if (keys.size() != values.size())
		refuse<StoreError>("multiSet keys and values vectors must be of same size");
	Writer q = question(Ask::MultiSet).strings(keys);
	for (auto& v : values)
		q.string(v);
	perform(q.bytes);
}

void Store::queuePush(const std::string& key, const Bytes& value) { perform(question(Ask::Push).string(key).string(value).bytes); }

Bytes Store::queuePop(const std::string& key, bool block) {
	if (block)
		return await(question(Ask::Pop).strings(Keys{key}).bytes, timeout_);
	auto a = perform(question(Ask::TryPop).string(key).bytes);
	Reader r{a};
	if (!r.number())
		refuse<EmptyError>("queue is empty");
	return r.string<Bytes>();
}

int64_t Store::queueLen(const std::string& key) { return first(perform(question(Ask::Length).string(key).bytes)); }

Keys Store::listKeys() {
	auto a = perform(question(Ask::List).bytes);
	return Reader{a}.keys();
}

} // namespace gompi_torch

#include "group.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "fail.h"
#include "members.h"

namespace gompi_torch {

namespace {

// The groups that are open: their communicators, and their queues.
struct Groups {
	std::mutex mutex;
	std::map<gompi_comm, std::shared_ptr<Queue>> open;
};

Groups& groups() {
	static auto* all = new Groups; // groups may outlive main
	return *all;
}

} // namespace

Group::Group(Communicator c, std::string name, int rank, int size, StorePtr s, std::chrono::milliseconds limit)
	: GroupBase(rank, size), owned(std::move(c)), comm(owned.get()), store(std::move(s)), timeout(std::make_shared<Limit>(limit)),
	  me(std::make_shared<Member>(Member{std::move(name), rank, size})), queue(std::make_shared<Queue>(store, me, hooks)), messages(comm) {
	check(gompi_set_timeout(comm, limit.count()));
	check(gompi_share(comm)); // tensors of the heap are used in place
	std::lock_guard<std::mutex> lock(groups().mutex);
	groups().open[comm] = queue;
}

Group::~Group() {
	python::Unlocked unlocked; // tensors that go meanwhile, and callbacks, may be Python's
	{
		std::lock_guard<std::mutex> lock(groups().mutex);
		groups().open.erase(comm);
	}
	queue->close();
}

std::string Group::leaveAll() {
	decltype(Groups::open) open;
	{
		std::lock_guard<std::mutex> lock(groups().mutex);
		open = groups().open;
	}
	std::string why;
	for (auto& g : open)
		if (gompi_free(g.first) == GOMPI_ERR_MISMATCH)
			why = gompi_error();
	for (auto& g : open)
		g.second->close();
	return why;
}

namespace {

// The limit of what this thread calls now, if it has one of its own.
thread_local std::chrono::milliseconds callLimit = c10d::kUnsetTimeout;

// While there is a Call, calls of this thread have the limit that the options say, and this thread
// waits for them, if they say so. Before torch 2.15 the options of most collectives cannot, and
// their caller does: _backend.py.
struct Call {
	template <typename Options> explicit Call(const Options& o) {
		callLimit = o.timeout;
#ifdef GOMPI_TORCH_HAS_HOOKS
		Queue::waitsForNext(!o.asyncOp);
#endif
	}
	~Call() {
		callLimit = c10d::kUnsetTimeout;
#ifdef GOMPI_TORCH_HAS_HOOKS
		Queue::waitsForNext(false);
#endif
	}
};

// Runs a collective, which may take so long. All others may take as long as the group's do.
int within(gompi_comm c, const Limit& all, std::chrono::milliseconds limit, const std::function<int()>& run) {
	check(gompi_set_timeout(c, limit.count()));
	auto reset = [&] { check(gompi_set_timeout(c, all.load().count())); };
	int err;
	try {
		err = run();
	} catch (...) {
		reset();
		throw;
	}
	if (err == GOMPI_OK) // in a group that is broken nothing waits any more
		reset();
	return err;
}

} // namespace

WorkPtr Group::submit(c10d::OpType op, const char* title, const Tensors& inputs, Tensors outputs, std::function<int()> run) {
	if (callLimit != c10d::kUnsetTimeout)
		run = [c = comm, all = timeout, limit = callLimit, run = std::move(run)] { return within(c, *all, limit, run); };
	auto c = c10::make_intrusive<Collective>(queue, op, title, inputs, std::move(outputs), Interruptible::countedHere(std::move(run)));
	called++;
	queue->push(c);
	return note(c);
}

WorkPtr Group::note(WorkPtr work) {
	if (coalescing)
		coalesced.push_back(work);
	return work;
}

namespace {

int reduceAll(gompi_comm c, Flat& t) {
	return inPlace(t, true, [&] { return gompi_allreduce(c, t.data(), t.data(), t.count(), t.type(), t.op()); });
}

// Makes n calls of gompi, until one fails.
template <typename Call> int each(size_t n, Call call) {
	int err = GOMPI_OK;
	for (size_t i = 0; i < n && !err; i++)
		err = call(i);
	return err;
}

} // namespace

WorkPtr Group::broadcast(Tensors& tensors, const c10d::BroadcastOptions& o) {
	Call scope(o);
	Flat t(only(tensors));
	return submit(c10d::OpType::BROADCAST, "gompi:broadcast", tensors, tensors, [c = comm, t, root = o.rootRank, wanted = rank_ != o.rootRank]() mutable {
		return inPlace(t, wanted, [&] { return gompi_bcast(c, t.data(), t.count(), t.type(), root); });
	});
}

WorkPtr Group::allreduce(Tensors& tensors, const c10d::AllreduceOptions& o) {
	Call scope(o);
	if (only(tensors).is_sparse())
		return sumSparse(tensors[0], o.reduceOp);
	auto t = Flat(tensors[0]).reducedBy(o.reduceOp);
	return submit(c10d::OpType::ALLREDUCE, "gompi:all_reduce", tensors, tensors, [c = comm, t]() mutable { return reduceAll(c, t); });
}

WorkPtr Group::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& o) {
	Call scope(o);
	std::vector<Flat> all;
	for (auto& t : tensors)
		all.push_back(Flat(t).reducedBy(o.reduceOp));
	return submit(c10d::OpType::ALLREDUCE_COALESCED, "gompi:all_reduce", tensors, tensors, [c = comm, all]() mutable {
		return each(all.size(), [&](size_t i) { return reduceAll(c, all[i]); });
	});
}

// Every rank gets the elements of all, which may be as many as it likes, and adds up those of equal
// indices in the order of the ranks.
WorkPtr Group::sumSparse(at::Tensor& sparse, const c10d::ReduceOp& op) {
	if (static_cast<c10d::ReduceOp::RedOpType>(op) != c10d::ReduceOp::SUM)
		fail("an all_reduce of a sparse tensor: want ReduceOp.SUM");
	return submit(c10d::OpType::ALLREDUCE, "gompi:sparse_all_reduce", {sparse}, {sparse}, [c = comm, size = size_, t = sparse]() mutable {
		auto mine = t.coalesce();
		int64_t n = mine._nnz();
		std::vector<int64_t> ns(size);
		if (int err = gompi_allgather(c, &n, ns.data(), 1, GOMPI_INT64))
			return err;
		int64_t total = std::accumulate(ns.begin(), ns.end(), int64_t(0));
		// Its rows are what allgatherv moves, one for each element.
		auto gather = [&](const at::Tensor& rows, at::Tensor& all) {
			auto shape = rows.sizes().vec();
			shape[0] = total;
			all = at::empty(shape, rows.options());
			int64_t row = 1;
			for (size_t i = 1; i < shape.size(); i++)
				row *= shape[i];
			std::vector<int64_t> counts(ns);
			for (auto& k : counts)
				k *= row;
			return gompi_allgatherv(c, rows.data_ptr(), all.data_ptr(), counts.data(), typeOf(rows));
		};
		at::Tensor indices, values;
		if (int err = gather(mine._indices().t().contiguous(), indices))
			return err;
		if (int err = gather(mine._values().contiguous(), values))
			return err;
		auto sum = at::sparse_coo_tensor(indices.t().contiguous(), values, t.sizes()).coalesce();
		t.copy_(sum);
		return static_cast<int>(GOMPI_OK);
	});
}

WorkPtr Group::reduce(Tensors& tensors, const c10d::ReduceOptions& o) {
	Call scope(o);
	auto t = Flat(only(tensors)).reducedBy(o.reduceOp);
	return submit(c10d::OpType::REDUCE, "gompi:reduce", tensors, tensors, [c = comm, t, root = o.rootRank, wanted = rank_ == o.rootRank]() mutable {
		return inPlace(t, wanted, [&] { return gompi_reduce(c, t.data(), t.data(), t.count(), t.type(), t.op(), root); });
	});
}

namespace {

int gatherAll(gompi_comm c, Flat& in, Flat& out) {
	return through(in, out, [&] { return gompi_allgather(c, in.data(), out.data(), in.count(), in.type()); });
}

int reduceScatter(gompi_comm c, Flat& in, Flat& out) {
	return through(in, out, [&] { return gompi_reduce_scatter_block(c, in.data(), out.data(), out.count(), in.type(), in.op()); });
}

// Throws if the lengths of a whole and of one block for each rank do not fit.
void wantBlocks(const Flat& whole, const Flat& block, int ranks) {
	if (whole.count() != block.count() * ranks || whole.scalarType() != block.scalarType())
		fail(whole.count(), " elements of ", whole.scalarType(), " and a block of ", block.count(), " of ",
			block.scalarType(), ": want a block for each of ", ranks, " ranks");
}

std::vector<int64_t> lengthsOf(const Tensors& blocks) {
	std::vector<int64_t> all;
	for (auto& t : blocks)
		all.push_back(t.numel());
	return all;
}

bool areEqual(const std::vector<int64_t>& lengths) { return std::set<int64_t>(lengths.begin(), lengths.end()).size() == 1; }

// Throws if a rank's block is not as long as the lengths of all say.
void wantBlock(const std::vector<int64_t>& lengths, int rank, int ranks, const Flat& whole, const Flat& block) {
	if (static_cast<int>(lengths.size()) != ranks || block.count() != lengths[rank] || whole.scalarType() != block.scalarType())
		fail("blocks of ", lengths, " elements of ", whole.scalarType(), ", and one of ", block.count(), " of ",
			block.scalarType(), " on rank ", rank, ": want one for each of ", ranks, " ranks, and this as long as the list says");
}

} // namespace

WorkPtr Group::gatherTo(c10d::OpType op, const Tensors& inputs, const Tensors& outputs, Flat out) {
	Flat in(inputs);
	wantBlocks(out, in, size_);
	return submit(op, "gompi:all_gather", inputs, outputs, [c = comm, in, out]() mutable { return gatherAll(c, in, out); });
}

WorkPtr Group::allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& o) {
	Call scope(o);
	auto& blocks = outputs.at(0);
	auto lengths = lengthsOf(blocks);
	if (areEqual(lengths))
		return gatherTo(c10d::OpType::ALLGATHER, {only(inputs)}, blocks, Flat(blocks));
	Flat in(only(inputs)), out(blocks);
	wantBlock(lengths, rank_, size_, out, in);
	return submit(c10d::OpType::ALLGATHER, "gompi:all_gather", {only(inputs)}, blocks, [c = comm, in, out, lengths]() mutable {
		return through(in, out, [&] { return gompi_allgatherv(c, in.data(), out.data(), lengths.data(), in.type()); });
	});
}

WorkPtr Group::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& o) {
	Call scope(o);
	return gatherTo(c10d::OpType::_ALLGATHER_BASE, {input}, {output}, Flat(output));
}

WorkPtr Group::allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& o) {
	Call scope(o);
	if (static_cast<int>(outputs.size()) != size_)
		fail(outputs.size(), " lists: want one for each of ", size_, " ranks");
	std::vector<Flat> ins(inputs.begin(), inputs.end()), outs;
	Tensors all;
	for (size_t i = 0; i < inputs.size(); i++) {
		Tensors of;
		for (auto& list : outputs)
			of.push_back(list.at(i));
		outs.push_back(Flat::alike(of));
		wantBlocks(outs[i], ins[i], size_);
		all.insert(all.end(), of.begin(), of.end());
	}
	return submit(c10d::OpType::ALLGATHER_COALESCED, "gompi:all_gather", inputs, all, [c = comm, ins, outs]() mutable {
		return each(ins.size(), [&](size_t i) { return gatherAll(c, ins[i], outs[i]); });
	});
}

WorkPtr Group::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& o) {
	Call scope(o);
	if (rank_ != o.rootRank)
		return gatherAt(o.rootRank, only(inputs), {}, std::nullopt);
	return gatherAt(o.rootRank, only(inputs), outputs.at(0), Flat::alike(outputs[0]));
}

WorkPtr Group::gather_into_tensor(at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& o) {
	Call scope(o);
	if (rank_ != o.rootRank)
		return gatherAt(o.rootRank, input, {}, std::nullopt);
	return gatherAt(o.rootRank, input, {output}, Flat(output));
}

WorkPtr Group::gatherAt(int root, const at::Tensor& input, const Tensors& outputs, std::optional<Flat> out) {
	Flat in(input);
	if (!out)
		return submit(c10d::OpType::GATHER, "gompi:gather", {input}, {}, [c = comm, in, root]() mutable {
			in.load();
			return gompi_gather(c, in.data(), nullptr, in.count(), in.type(), root);
		});
	wantBlocks(*out, in, size_);
	return submit(c10d::OpType::GATHER, "gompi:gather", {input}, outputs, [c = comm, in, out = *out, root]() mutable {
		return through(in, out, [&] { return gompi_gather(c, in.data(), out.data(), in.count(), in.type(), root); });
	});
}

WorkPtr Group::scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& o) {
	Call scope(o);
	Flat out(only(outputs));
	if (rank_ != o.rootRank)
		return submit(c10d::OpType::SCATTER, "gompi:scatter", {}, outputs, [c = comm, out, root = o.rootRank]() mutable {
			return inPlace(out, true, [&] { return gompi_scatter(c, nullptr, out.data(), out.count(), out.type(), root); });
		});
	auto in = Flat::alike(inputs.at(0));
	wantBlocks(in, out, size_);
	return submit(c10d::OpType::SCATTER, "gompi:scatter", inputs[0], outputs, [c = comm, in, out, root = o.rootRank]() mutable {
		return through(in, out, [&] { return gompi_scatter(c, in.data(), out.data(), out.count(), out.type(), root); });
	});
}

WorkPtr Group::scatterSums(const Tensors& inputs, Tensors outputs, Flat in) {
	Flat out(only(outputs));
	wantBlocks(in, out, size_);
	return submit(c10d::OpType::_REDUCE_SCATTER_BASE, "gompi:reduce_scatter", inputs, outputs, [c = comm, in, out]() mutable { return reduceScatter(c, in, out); });
}

WorkPtr Group::reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& o) {
	Call scope(o);
	auto& blocks = inputs.at(0);
	auto lengths = lengthsOf(blocks);
	if (areEqual(lengths))
		return scatterSums(blocks, outputs, Flat(blocks).reducedBy(o.reduceOp));
	Flat in = Flat(blocks).reducedBy(o.reduceOp), out(only(outputs));
	wantBlock(lengths, rank_, size_, in, out);
	return submit(c10d::OpType::REDUCE_SCATTER, "gompi:reduce_scatter", blocks, outputs, [c = comm, in, out, lengths]() mutable {
		return through(in, out, [&] { return gompi_reduce_scatter(c, in.data(), out.data(), lengths.data(), in.type(), in.op()); });
	});
}

WorkPtr Group::_reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& o) {
	Call scope(o);
	return scatterSums({input}, {output}, Flat(input).reducedBy(o.reduceOp));
}

namespace {

// How many elements of t go to each rank, or come from each: splits are of rows, equal ones if
// there are none.
std::vector<int64_t> countsOf(const at::Tensor& t, std::vector<int64_t> splits, int ranks) {
	int64_t rows = t.dim() ? t.size(0) : 1, row = rows ? t.numel() / rows : 1;
	if (splits.empty()) {
		if (rows % ranks != 0)
			fail("all_to_all of ", rows, " rows: want as many for each of ", ranks, " ranks, or splits");
		splits.assign(ranks, rows / ranks);
	}
	if (static_cast<int>(splits.size()) != ranks || std::accumulate(splits.begin(), splits.end(), int64_t(0)) != rows)
		fail("all_to_all of ", rows, " rows with splits ", splits, ": want one for each of ", ranks, " ranks, and ", rows, " in all");
	for (auto& n : splits)
		n *= row;
	return splits;
}

} // namespace

WorkPtr Group::exchange(c10d::OpType op, const Tensors& outputs, const std::vector<int64_t>& recvs, const Tensors& inputs, const std::vector<int64_t>& sends) {
	Flat out(outputs), in(inputs);
	if (in.scalarType() != out.scalarType())
		fail("all_to_all of ", in.scalarType(), " to ", out.scalarType(), ": want one type");
	return submit(op, "gompi:all_to_all", inputs, outputs, [c = comm, out, recvs, in, sends]() mutable {
		return through(in, out, [&] { return gompi_alltoallv(c, in.data(), sends.data(), out.data(), recvs.data(), in.type()); });
	});
}

WorkPtr Group::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& outputSplits,
                             std::vector<int64_t>& inputSplits, const c10d::AllToAllOptions& o) {
	Call scope(o);
	auto recvs = countsOf(output, outputSplits, size_), sends = countsOf(input, inputSplits, size_);
	return exchange(c10d::OpType::ALLTOALL_BASE, {output}, recvs, {input}, sends);
}

WorkPtr Group::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& o) {
	Call scope(o);
	if (static_cast<int>(outputs.size()) != size_ || static_cast<int>(inputs.size()) != size_)
		fail("all_to_all of ", inputs.size(), " to ", outputs.size(), " tensors: want one for each of ", size_, " ranks");
	std::vector<int64_t> recvs, sends;
	for (int i = 0; i < size_; i++) {
		recvs.push_back(outputs[i].numel());
		sends.push_back(inputs[i].numel());
	}
	return exchange(c10d::OpType::ALLTOALL, outputs, recvs, inputs, sends);
}

WorkPtr Group::barrier(const c10d::BarrierOptions& o) {
	Call scope(o);
	return submit(c10d::OpType::BARRIER, "gompi:barrier", {}, {}, [c = comm] { return gompi_barrier(c); });
}

#if TORCH_VERSION_MAJOR >= 2

WorkPtr Group::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& o) {
	Call scope(o);
	std::vector<Flat> outs(outputs.begin(), outputs.end()), ins(inputs.begin(), inputs.end());
	for (size_t i = 0; i < ins.size(); i++)
		wantBlocks(outs.at(i), ins[i], size_);
	return submit(c10d::OpType::COALESCED, "gompi:all_gather", inputs, outputs, [c = comm, outs, ins]() mutable {
		return each(ins.size(), [&](size_t i) { return gatherAll(c, ins[i], outs[i]); });
	});
}

WorkPtr Group::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& o) {
	Call scope(o);
	std::vector<Flat> outs(outputs.begin(), outputs.end()), ins;
	for (size_t i = 0; i < inputs.size(); i++) {
		ins.push_back(Flat(inputs[i]).reducedBy(o.reduceOp));
		wantBlocks(ins[i], outs.at(i), size_);
	}
	return submit(c10d::OpType::COALESCED, "gompi:reduce_scatter", inputs, outputs, [c = comm, outs, ins]() mutable {
		return each(ins.size(), [&](size_t i) { return reduceScatter(c, ins[i], outs[i]); });
	});
}

void Group::setTimeout(std::chrono::milliseconds limit) {
	*timeout = limit;
	check(gompi_set_timeout(comm, limit.count()));
}

void Group::abort() {
	python::Unlocked unlocked; // threads that wait may want it, to end
	// The others are told at once: what this rank does next may be no call of gompi.
	gompi_revoke(comm, "by abort()");
	gompi_free(comm);
}

#ifdef GOMPI_TORCH_HAS_HOOKS

c10d::ErrorType Group::getError() {
	switch (queue->error()) {
	case GOMPI_OK: return c10d::ErrorType::SUCCESS;
	case GOMPI_ERR_TIMEOUT: return c10d::ErrorType::TIMEOUT;
	case GOMPI_ERR_REVOKED:
	case GOMPI_ERR_LEFT: return c10d::ErrorType::REMOTE_ERROR;
	default: return c10d::ErrorType::COMM_ERROR;
	}
}

c10::intrusive_ptr<c10d::Backend> Group::split(const StorePtr& store, const std::vector<int>& ranks, const c10::intrusive_ptr<Options>& o) {
	auto place = std::find(ranks.begin(), ranks.end(), rank_);
	if (place == ranks.end())
		return nullptr;
	// Groups that are made at the same time differ in their tags.
	int tag = std::hash<std::string>()(o->group_name) & 0x3fffffff;
	gompi_comm c;
	awaitMembers(c10::make_intrusive<c10d::PrefixStore>(o->group_name, store), ranks, static_cast<int>(place - ranks.begin()), o->timeout);
	check(gompi_create_group(comm, ranks.data(), ranks.size(), tag, &c));
	return c10::make_intrusive<Group>(Communicator(c), o->group_name, static_cast<int>(place - ranks.begin()), static_cast<int>(ranks.size()), store->clone(), o->timeout);
}

#endif

void Group::startCoalescing() { coalescing = true; }

WorkPtr Group::endCoalescing() {
	coalescing = false;
	// It comes behind them, so of the collectives it only asks for errors.
	return submit(c10d::OpType::COALESCED, "gompi:coalesced", {}, {}, [works = std::exchange(coalesced, {})] {
		for (auto& w : works)
			w->wait();
		return GOMPI_OK;
	});
}

#endif

WorkPtr Group::send(Tensors& tensors, int to, int tag) {
	Messages::wantPeer(to, size_, tag);
	Transfer m(only(tensors), false);
	check(gompi_isend(comm, m.numbers->data(), m.numbers->count(), m.numbers->type(), to, tag, &m.request));
	return note(c10::make_intrusive<Message>(c10d::OpType::SEND, "gompi:send", tensors[0], std::move(m), timeout->load(), hooks, me, to, tag));
}

WorkPtr Group::recv(Tensors& tensors, int from, int tag) { return receive(c10d::OpType::RECV, "gompi:recv", only(tensors), from, tag); }

WorkPtr Group::recvAnysource(Tensors& tensors, int tag) {
	return receive(c10d::OpType::RECVANYSOURCE, "gompi:recvAnySource", only(tensors), GOMPI_ANY_SOURCE, tag);
}

WorkPtr Group::receive(c10d::OpType op, const char* title, const at::Tensor& t, int from, int tag) {
	Messages::wantPeer(op == c10d::OpType::RECV ? from : rank_, size_, tag);
	return note(c10::make_intrusive<Message>(op, title, t, messages.receive(t, from, tag), timeout->load(), hooks, me, from, tag));
}

} // namespace gompi_torch

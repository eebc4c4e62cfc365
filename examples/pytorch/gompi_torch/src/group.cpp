#include "group.h"

#include <numeric>
#include <utility>

#include "tensors.h"

namespace gompi_torch {

Group::Group(gompi_comm comm, int rank, int size, const std::string& name, std::chrono::milliseconds timeout)
	: GroupBase(rank, size), comm(comm), timeout(timeout), queue(std::make_shared<Queue>(name, rank, size)), messages(comm) {
	void* byte; // which goes with the communicator: its ranks then look whether tensors lie in the heap
	check(gompi_set_timeout(comm, timeout.count()));
	check(gompi_alloc(comm, 1, &byte));
}

Group::~Group() {
	queue->close();
	messages.close();
	gompi_free(comm);
}

WorkPtr Group::submit(c10d::OpType op, const char* title, Tensors outputs, std::function<int()> run) {
	auto c = c10::make_intrusive<Collective>(queue, op, title, std::move(outputs), std::move(run));
	called++;
	queue->push(c);
	return note(c);
}

WorkPtr Group::note(WorkPtr work) {
	if (coalescing)
		coalesced.push_back(work);
	return work;
}

WorkPtr Group::broadcast(Tensors& tensors, const c10d::BroadcastOptions& o) {
	auto t = only(tensors);
	wantDense(t);
	return submit(c10d::OpType::BROADCAST, "gompi:broadcast", tensors, [c = comm, t, root = o.rootRank] {
		return gompi_bcast(c, t.data_ptr(), t.numel(), typeOf(t), root);
	});
}

WorkPtr Group::allreduce(Tensors& tensors, const c10d::AllreduceOptions& o) {
	auto t = only(tensors);
	if (t.is_sparse())
		return sumSparse(t, o.reduceOp);
	wantDense(t);
	return submit(c10d::OpType::ALLREDUCE, "gompi:all_reduce", tensors, [c = comm, t, type = typeOf(t), op = opOf(o.reduceOp, t)] {
		return gompi_allreduce(c, t.data_ptr(), t.data_ptr(), t.numel(), type, op);
	});
}

WorkPtr Group::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& o) {
	for (auto& t : tensors) {
		wantDense(t);
		opOf(o.reduceOp, t);
	}
	return submit(c10d::OpType::ALLREDUCE_COALESCED, "gompi:all_reduce", tensors, [c = comm, tensors, op = o.reduceOp] {
		int err = GOMPI_OK;
		for (auto& t : tensors)
			if (!err)
				err = gompi_allreduce(c, t.data_ptr(), t.data_ptr(), t.numel(), typeOf(t), opOf(op, t));
		return err;
	});
}

// Every rank gets the elements of all, which may be as many as it likes, and adds up those of equal
// indices in the order of the ranks.
WorkPtr Group::sumSparse(at::Tensor& sparse, const c10d::ReduceOp& op) {
	TORCH_CHECK(static_cast<c10d::ReduceOp::RedOpType>(op) == c10d::ReduceOp::SUM, "gompi: an all_reduce of a sparse tensor: want ReduceOp.SUM");
	return submit(c10d::OpType::ALLREDUCE, "gompi:sparse_all_reduce", {sparse}, [c = comm, size = size_, t = sparse]() mutable {
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
			return gompi_allgatherv(c, rows.data_ptr(), all.data_ptr(), counts.data(), nullptr, typeOf(rows));
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
	auto t = only(tensors);
	wantDense(t);
	return submit(c10d::OpType::REDUCE, "gompi:reduce", tensors, [c = comm, t, root = o.rootRank, type = typeOf(t), op = opOf(o.reduceOp, t)] {
		return gompi_reduce(c, t.data_ptr(), t.data_ptr(), t.numel(), type, op, root);
	});
}

namespace {

int gatherAll(gompi_comm c, const at::Tensor& input, Flat& out) {
	int err = gompi_allgather(c, input.data_ptr(), out.all.data_ptr(), input.numel(), typeOf(input));
	if (!err)
		out.store();
	return err;
}

// Throws if the lengths of a tensor and of one block for each rank do not fit.
void wantBlocks(const at::Tensor& whole, const at::Tensor& block, int ranks) {
	wantDense(whole);
	wantDense(block);
	TORCH_CHECK(whole.numel() == block.numel() * ranks && whole.scalar_type() == block.scalar_type(),
		"gompi: ", whole.numel(), " elements of ", whole.scalar_type(), " and a block of ", block.numel(), " of ",
		block.scalar_type(), ": want a block for each of ", ranks, " ranks");
}

} // namespace

WorkPtr Group::allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions&) {
	auto in = only(inputs).contiguous();
	auto out = Flat::toWrite(outputs.at(0));
	wantBlocks(out.all, in, size_);
	return submit(c10d::OpType::ALLGATHER, "gompi:all_gather", outputs[0], [c = comm, in, out]() mutable { return gatherAll(c, in, out); });
}

WorkPtr Group::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions&) {
	wantBlocks(output, input, size_);
	return submit(c10d::OpType::_ALLGATHER_BASE, "gompi:all_gather", {output}, [c = comm, output, input] {
		return gompi_allgather(c, input.data_ptr(), output.data_ptr(), input.numel(), typeOf(input));
	});
}

WorkPtr Group::allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions&) {
	TORCH_CHECK(static_cast<int>(outputs.size()) == size_, "gompi: ", outputs.size(), " lists: want one for each of ", size_, " ranks");
	std::vector<Flat> outs;
	Tensors ins, all;
	for (size_t i = 0; i < inputs.size(); i++) {
		Tensors of;
		for (auto& list : outputs)
			of.push_back(list.at(i));
		ins.push_back(inputs[i].contiguous());
		outs.push_back(Flat::toWrite(of));
		wantBlocks(outs[i].all, ins[i], size_);
		all.insert(all.end(), of.begin(), of.end());
	}
	return submit(c10d::OpType::ALLGATHER_COALESCED, "gompi:all_gather", all, [c = comm, ins, outs]() mutable {
		int err = GOMPI_OK;
		for (size_t i = 0; i < ins.size() && !err; i++)
			err = gatherAll(c, ins[i], outs[i]);
		return err;
	});
}

WorkPtr Group::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& o) {
	auto in = only(inputs).contiguous();
	wantDense(in);
	if (rank_ != o.rootRank)
		return submit(c10d::OpType::GATHER, "gompi:gather", {}, [c = comm, in, root = o.rootRank] {
			return gompi_gather(c, in.data_ptr(), nullptr, in.numel(), typeOf(in), root);
		});
	auto out = Flat::toWrite(outputs.at(0));
	wantBlocks(out.all, in, size_);
	return submit(c10d::OpType::GATHER, "gompi:gather", outputs[0], [c = comm, in, out, root = o.rootRank]() mutable {
		int err = gompi_gather(c, in.data_ptr(), out.all.data_ptr(), in.numel(), typeOf(in), root);
		if (!err)
			out.store();
		return err;
	});
}

WorkPtr Group::scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& o) {
	auto out = only(outputs);
	wantDense(out);
	at::Tensor in; // at the root
	if (rank_ == o.rootRank) {
		in = Flat::toRead(inputs.at(0)).all;
		wantBlocks(in, out, size_);
	}
	return submit(c10d::OpType::SCATTER, "gompi:scatter", outputs, [c = comm, in, out, root = o.rootRank] {
		return gompi_scatter(c, in.defined() ? in.data_ptr() : nullptr, out.data_ptr(), out.numel(), typeOf(out), root);
	});
}

WorkPtr Group::reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& o) {
	auto in = Flat::toRead(inputs.at(0)).all;
	WorkPtr work = _reduce_scatter_base(only(outputs), in, o);
	return work;
}

WorkPtr Group::_reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& o) {
	wantBlocks(input, output, size_);
	return submit(c10d::OpType::_REDUCE_SCATTER_BASE, "gompi:reduce_scatter", {output}, [c = comm, output, input, op = opOf(o.reduceOp, input)] {
		return gompi_reduce_scatter_block(c, input.data_ptr(), output.data_ptr(), output.numel(), typeOf(input), op);
	});
}

namespace {

// How many elements of t go to each rank, or come from each: splits are of rows, equal ones if there
// are none.
std::vector<int64_t> countsOf(const at::Tensor& t, std::vector<int64_t> splits, int ranks) {
	int64_t rows = t.dim() ? t.size(0) : 1, row = rows ? t.numel() / rows : 1;
	if (splits.empty()) {
		TORCH_CHECK(rows % ranks == 0, "gompi: all_to_all of ", rows, " rows: want as many for each of ", ranks, " ranks, or splits");
		splits.assign(ranks, rows / ranks);
	}
	TORCH_CHECK(static_cast<int>(splits.size()) == ranks && std::accumulate(splits.begin(), splits.end(), int64_t(0)) == rows,
		"gompi: all_to_all of ", rows, " rows with splits ", splits, ": want one for each of ", ranks, " ranks, and ", rows, " in all");
	for (auto& n : splits)
		n *= row;
	return splits;
}

} // namespace

WorkPtr Group::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& outputSplits,
                             std::vector<int64_t>& inputSplits, const c10d::AllToAllOptions&) {
	wantDense(output);
	wantDense(input);
	auto sends = countsOf(input, inputSplits, size_), recvs = countsOf(output, outputSplits, size_);
	return submit(c10d::OpType::ALLTOALL_BASE, "gompi:all_to_all", {output}, [c = comm, output, input, sends, recvs] {
		return gompi_alltoallv(c, input.data_ptr(), sends.data(), nullptr, output.data_ptr(), recvs.data(), nullptr, typeOf(input));
	});
}

WorkPtr Group::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions&) {
	TORCH_CHECK(static_cast<int>(outputs.size()) == size_ && static_cast<int>(inputs.size()) == size_,
		"gompi: all_to_all of ", inputs.size(), " to ", outputs.size(), " tensors: want one for each of ", size_, " ranks");
	std::vector<int64_t> sends, recvs;
	Tensors flat;
	int64_t room = 0;
	for (int i = 0; i < size_; i++) {
		wantDense(outputs[i]);
		TORCH_CHECK(inputs[i].scalar_type() == inputs[0].scalar_type() && outputs[i].scalar_type() == inputs[0].scalar_type(),
			"gompi: all_to_all of tensors of several types: want one");
		flat.push_back(inputs[i].reshape(-1));
		sends.push_back(inputs[i].numel());
		recvs.push_back(outputs[i].numel());
		room += outputs[i].numel();
	}
	auto in = at::cat(flat);
	Flat out{at::empty({room}, in.options()), outputs};
	return submit(c10d::OpType::ALLTOALL, "gompi:all_to_all", outputs, [c = comm, in, out, sends, recvs]() mutable {
		int err = gompi_alltoallv(c, in.data_ptr(), sends.data(), nullptr, out.all.data_ptr(), recvs.data(), nullptr, typeOf(in));
		if (!err)
			out.store();
		return err;
	});
}

WorkPtr Group::barrier(const c10d::BarrierOptions&) {
	return submit(c10d::OpType::BARRIER, "gompi:barrier", {}, [c = comm] { return gompi_barrier(c); });
}

#if TORCH_VERSION_MAJOR >= 2

WorkPtr Group::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions&) {
	for (size_t i = 0; i < inputs.size(); i++)
		wantBlocks(outputs.at(i), inputs[i], size_);
	return submit(c10d::OpType::COALESCED, "gompi:all_gather", outputs, [c = comm, outputs, inputs] {
		int err = GOMPI_OK;
		for (size_t i = 0; i < inputs.size() && !err; i++)
			err = gompi_allgather(c, inputs[i].data_ptr(), outputs[i].data_ptr(), inputs[i].numel(), typeOf(inputs[i]));
		return err;
	});
}

WorkPtr Group::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& o) {
	for (size_t i = 0; i < inputs.size(); i++) {
		wantBlocks(inputs[i], outputs.at(i), size_);
		opOf(o.reduceOp, inputs[i]);
	}
	return submit(c10d::OpType::COALESCED, "gompi:reduce_scatter", outputs, [c = comm, outputs, inputs, op = o.reduceOp] {
		int err = GOMPI_OK;
		for (size_t i = 0; i < inputs.size() && !err; i++)
			err = gompi_reduce_scatter_block(c, inputs[i].data_ptr(), outputs[i].data_ptr(), outputs[i].numel(), typeOf(inputs[i]), opOf(op, inputs[i]));
		return err;
	});
}

void Group::startCoalescing() { coalescing = true; }

WorkPtr Group::endCoalescing() {
	coalescing = false;
	// It comes behind them, so of the collectives it only asks for errors.
	return submit(c10d::OpType::COALESCED, "gompi:coalesced", {}, [works = std::exchange(coalesced, {})] {
		for (auto& w : works)
			w->wait();
		return GOMPI_OK;
	});
}

#endif

WorkPtr Group::send(Tensors& tensors, int to, int tag) {
	auto& t = only(tensors);
	wantDense(t);
	Transfer m;
	m.tensor = t;
	check(gompi_isend(comm, t.data_ptr(), t.numel(), typeOf(t), to, tag, &m.request));
	return note(c10::make_intrusive<Message>(c10d::OpType::SEND, std::move(m), timeout));
}

WorkPtr Group::recv(Tensors& tensors, int from, int tag) {
	auto& t = only(tensors);
	wantDense(t);
	return note(c10::make_intrusive<Message>(c10d::OpType::RECV, messages.receive(t, from, tag), timeout));
}

WorkPtr Group::recvAnysource(Tensors& tensors, int tag) { return recv(tensors, GOMPI_ANY_SOURCE, tag); }

} // namespace gompi_torch

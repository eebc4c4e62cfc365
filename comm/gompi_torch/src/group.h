// A process group of torch.distributed over a communicator of gompi.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include <torch/version.h>
#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 15)
#define GOMPI_TORCH_HAS_HOOKS // C10D_BACKEND_HAS_HOOKS is also in 2.14, which lacks completion hooks
#endif

#include "communicator.h"
#include "messages.h"
#include "queue.h"
#include "tensors.h"

namespace gompi_torch {

#if TORCH_VERSION_MAJOR >= 2
using GroupBase = c10d::Backend;
#else
using GroupBase = c10d::ProcessGroup;
#endif

using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;

// How long each collective of a group may take. One that runs may outlive the Group.
using Limit = std::atomic<std::chrono::milliseconds>;

// A Group does what torch documents, for tensors in the memory of the processor. A collective of
// which a rank has not heard when the timeout has passed fails there, and the group is broken.
class Group : public GroupBase {
public:
	// The store is that which torch has for it, as the name is.
	Group(Communicator comm, std::string name, int rank, int size, StorePtr store, std::chrono::milliseconds timeout);
	// Blocks until all collectives that were called are over.
	~Group() override;
	// Frees the communicators of all groups: collectives under way end, and ranks that wait for this one hear that
	// it has left. It returns why ranks turn out to have called different ones, if they have.
	static std::string leaveAll();

	const std::string getBackendName() const override { return "gompi"; }

	WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& o) override;
	WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& o) override;
	WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& o) override;
	WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& o) override;
	WorkPtr allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& o) override;
	WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& o) override;
	WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& o) override;
	WorkPtr gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& o) override;
	WorkPtr gather_into_tensor(at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& o); // overrides that of torch >= 2.15
	WorkPtr scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& o) override;
	WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& o) override;
	WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& o) override;
	WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& outputSplits,
	                      std::vector<int64_t>& inputSplits, const c10d::AllToAllOptions& o) override;
	WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& o) override;
	WorkPtr barrier(const c10d::BarrierOptions& o) override;
	// By the group's store, so that the ranks that came are told which did not.
	void monitoredBarrier(const c10d::BarrierOptions& o, bool waitAllRanks) override;

	WorkPtr send(Tensors& tensors, int to, int tag) override;
	WorkPtr recv(Tensors& tensors, int from, int tag) override;
	WorkPtr recvAnysource(Tensors& tensors, int tag) override;

#if TORCH_VERSION_MAJOR >= 2
	WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& o) override;
	WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& o) override;

	void setTimeout(std::chrono::milliseconds limit);
	// As the end of this rank is for the others. It ends what threads of this one wait for, too.
	void abort();

	// What is called between the two starts at once; the second returns a work that is over when all of that is.
	void startCoalescing() override;
	WorkPtr endCoalescing() override;
#endif

#ifdef GOMPI_TORCH_HAS_HOOKS
	bool supportsSplitting() const override { return true; }
	c10::intrusive_ptr<Options> getBackendOptions() override { return c10::make_intrusive<Options>("gompi", timeout->load()); }
	c10d::ErrorType getError() override;

	// Not abort hooks: the flight recorder's takes seconds to write its file, before an error is told.
	bool supportsCompletionHooks() const override { return true; }
	void registerCompletionHook(int64_t id, c10d::CompletionHook hook) override {
		hooks->add(id, [hook](uint64_t key, std::optional<float> milliseconds) { hook({key, milliseconds}); });
	}
	void unregisterCompletionHook(int64_t id) override { hooks->remove(id); }

	c10::intrusive_ptr<c10d::Backend> split(const StorePtr& store, const std::vector<int>& ranks, const c10::intrusive_ptr<Options>& o) override;
#endif

	// Collectives are numbered; the numbers are those that errors tell.
	void setSequenceNumberForGroup() override {}
	uint64_t getSequenceNumberForGroup() override { return called; }

private:
	WorkPtr submit(c10d::OpType op, const char* title, const Tensors& inputs, Tensors outputs, std::function<int()> run);
	WorkPtr note(WorkPtr work);
	WorkPtr sumSparse(at::Tensor& t, const c10d::ReduceOp& op);
	WorkPtr gatherTo(c10d::OpType op, const Tensors& inputs, const Tensors& outputs, Flat out);
	WorkPtr gatherAt(int root, const at::Tensor& input, const Tensors& outputs, std::optional<Flat> out);
	WorkPtr scatterSums(const Tensors& inputs, Tensors outputs, Flat in);
	WorkPtr exchange(c10d::OpType op, const Tensors& outputs, const std::vector<int64_t>& recvs, const Tensors& inputs, const std::vector<int64_t>& sends);
	WorkPtr receive(c10d::OpType op, const char* title, const at::Tensor& t, int from, int tag);

	const Communicator owned;
	const gompi_comm comm; // of owned
	const StorePtr store;
	const std::shared_ptr<Limit> timeout;
	const MemberPtr me;
	const std::shared_ptr<Hooks> hooks = std::make_shared<Hooks>();
	std::shared_ptr<Queue> queue;
	Messages messages;
	uint64_t called = 0, monitored = 0; // collectives, and monitored barriers
	bool coalescing = false;
	std::vector<WorkPtr> coalesced; // what was called since startCoalescing
};

} // namespace gompi_torch

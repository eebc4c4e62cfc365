#include "tensors.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <torch/version.h>

#include "fail.h"

namespace gompi_torch {

void check(int code) {
	if (code == GOMPI_ERR_TIMEOUT)
		fail("Timed out waiting: ", gompi_error()); // scripts look for these words, which are gloo's
	if (code != GOMPI_OK)
		fail(gompi_error());
}

namespace {

// What can be reduced.
std::optional<gompi_type> numberOf(at::ScalarType t) {
	switch (t) {
	case at::kChar: return GOMPI_INT8;
	case at::kShort: return GOMPI_INT16;
	case at::kInt: return GOMPI_INT32;
	case at::kLong: return GOMPI_INT64;
	case at::kByte: return GOMPI_UINT8;
	case at::kBool: return GOMPI_UINT8;
	case at::kHalf: return GOMPI_FLOAT16;
	case at::kBFloat16: return GOMPI_BFLOAT16;
	case at::kFloat: return GOMPI_FLOAT32;
	case at::kDouble: return GOMPI_FLOAT64;
	case at::kComplexFloat: return GOMPI_COMPLEX64;
	case at::kComplexDouble: return GOMPI_COMPLEX128;
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
	case at::kUInt16: return GOMPI_UINT16;
	case at::kUInt32: return GOMPI_UINT32;
	case at::kUInt64: return GOMPI_UINT64;
#endif
	default: return std::nullopt;
	}
}

gompi_op opOf(c10d::ReduceOp::RedOpType op, at::ScalarType element) {
	if (!numberOf(element))
		fail("a reduction of a tensor of ", element, ": want one of int8 to int64, uint8 to uint64, bool, float16, bfloat16, float32, float64, complex64, complex128");
	bool boolean = element == at::kBool;
	switch (op) {
	case c10d::ReduceOp::SUM: return boolean ? GOMPI_MAX : GOMPI_SUM;
	case c10d::ReduceOp::PRODUCT: return boolean ? GOMPI_MIN : GOMPI_PROD;
	case c10d::ReduceOp::AVG:
		if (boolean)
			fail("ReduceOp.AVG of a tensor of bool");
		return GOMPI_AVG;
	case c10d::ReduceOp::MIN: return GOMPI_MIN;
	case c10d::ReduceOp::MAX: return GOMPI_MAX;
	case c10d::ReduceOp::BAND: return GOMPI_BAND;
	case c10d::ReduceOp::BOR: return GOMPI_BOR;
	case c10d::ReduceOp::BXOR: return GOMPI_BXOR;
#if TORCH_VERSION_MAJOR >= 2
	case c10d::ReduceOp::PREMUL_SUM:
		if (!at::isFloatingType(element))
			fail("ReduceOp.PREMUL_SUM of a tensor of ", element, ": want one of float16, bfloat16, float32, float64");
		return GOMPI_SUM;
#endif
	default: fail("unknown operator: want SUM, AVG, PREMUL_SUM, PRODUCT, MIN, MAX, BAND, BOR or BXOR");
	}
}

} // namespace

gompi_type typeOf(const at::Tensor& t) {
	if (auto number = numberOf(t.scalar_type()))
		return *number;
	switch (t.is_quantized() ? 0 : t.element_size()) { // those have a scale, too
	case 1: return GOMPI_UINT8;
	case 2: return GOMPI_UINT16;
	case 4: return GOMPI_UINT32;
	default: fail("a tensor of ", t.scalar_type(), ": want one that is not quantized");
	}
}

at::Tensor& only(std::vector<at::Tensor>& tensors) {
	if (tensors.size() != 1)
		fail(tensors.size(), " tensors: want one");
	return tensors[0];
}

namespace {

// Whether a tensor's memory has its numbers in the order of its shape, and nothing else.
bool isPlain(const at::Tensor& t) { return t.is_contiguous() && !t.is_conj() && !t.is_neg(); }

// Whether tensors lie one behind the other.
bool adjoin(const std::vector<at::Tensor>& tensors) {
	auto* end = static_cast<const char*>(tensors[0].data_ptr());
	for (auto& t : tensors) {
		if (!isPlain(t) || t.data_ptr() != end || !t.storage().is_alias_of(tensors[0].storage()))
			return false;
		end += t.nbytes();
	}
	return true;
}

// Whether elements of a tensor share memory, as an expanded tensor's do. It is told by strides, and
// may say so of tensors that interleave.
bool overlaps(const at::Tensor& t) {
	std::vector<std::pair<int64_t, int64_t>> dims; // stride and size
	for (int64_t d = 0; d < t.dim(); d++)
		if (t.size(d) > 1)
			dims.emplace_back(t.stride(d), t.size(d));
	std::sort(dims.begin(), dims.end());
	int64_t reach = 0; // of the dimensions so far, from the first element to the last
	for (auto [stride, size] : dims) {
		if (stride <= reach)
			return t.numel() > 0;
		reach += stride * (size - 1);
	}
	return false;
}

} // namespace

Flat::Flat(const at::Tensor& t) : element(t.scalar_type()), kind(typeOf(t)) {
	add(t);
	if (isPlain(t))
		all = t;
	else
		parts = {t};
}

Flat::Flat(const std::vector<at::Tensor>& tensors) {
	if (tensors.empty())
		fail("an empty list of tensors");
	element = tensors[0].scalar_type();
	kind = typeOf(tensors[0]);
	for (auto& t : tensors)
		add(t);
	if (adjoin(tensors))
		all = tensors.size() == 1 ? tensors[0] : tensors[0].as_strided({n}, {1});
	else
		parts = tensors;
}

void Flat::add(const at::Tensor& t) {
	if (!t.device().is_cpu() || t.layout() != at::kStrided)
		fail("a ", t.layout() == at::kStrided ? "strided" : "sparse", " tensor on ", t.device().str(), ": want a strided one on cpu");
	if (t.scalar_type() != element)
		fail("tensors of ", t.scalar_type(), " and ", element, ": want one type");
	n += t.numel();
}

Flat Flat::alike(const std::vector<at::Tensor>& tensors) {
	Flat f(tensors);
	for (auto& t : tensors)
		if (t.numel() != tensors[0].numel())
			fail("a list of tensors with ", t.numel(), " and ", tensors[0].numel(), " elements: want tensors alike");
	return f;
}

Flat Flat::reducedBy(const c10d::ReduceOp& op) const {
	Flat f = *this;
	f.operation = opOf(op, element);
#if TORCH_VERSION_MAJOR >= 2
	if (static_cast<c10d::ReduceOp::RedOpType>(op) == c10d::ReduceOp::PREMUL_SUM) {
		auto* by = static_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
		f.factor = by->tensor_factor.defined() ? by->tensor_factor.to(element).reshape({}) : at::scalar_tensor(by->double_factor, at::TensorOptions(element));
	}
#endif
	return f;
}

void Flat::open() {
	if (!parts.empty() && !all.defined())
		all = at::empty({n}, at::TensorOptions(element));
}

at::Tensor Flat::take(const at::Tensor& t, int64_t& at) const {
	auto from = std::exchange(at, at + t.numel());
	return all.narrow(0, from, t.numel()).view(t.sizes());
}

// Both copies are none of autograd's business: a leaf that requires grad is written, too, and no
// graph is made.

void Flat::load() {
	at::AutoDispatchBelowADInplaceOrView below;
	open();
	int64_t at = 0;
	for (auto& t : parts)
		take(t, at).copy_(t);
	if (!factor.defined())
		return;
	if (parts.empty())
		parts = {all}; // which may be an input, and stays as it is
	all = all.reshape({n}).mul(factor);
}

void Flat::store() {
	at::AutoDispatchBelowADInplaceOrView below;
	int64_t at = 0;
	for (auto& t : parts) {
		if (overlaps(t))
			fail("a tensor of shape ", t.sizes(), " and strides ", t.strides(), " has elements that share memory: want one to write to, as clone() returns");
		t.copy_(take(t, at));
	}
}

} // namespace gompi_torch

#include "tensors.h"

#include <stdexcept>

#include <torch/version.h>

namespace gompi_torch {

void check(int code) {
	if (code != GOMPI_OK)
		throw std::runtime_error(std::string("gompi: ") + gompi_error());
}

gompi_type typeOf(const at::Tensor& t) {
	switch (t.scalar_type()) {
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
	default: TORCH_CHECK(false, "gompi: a tensor of ", t.scalar_type(), ": want one of int8 to int64, uint8 to uint64, bool, float16, bfloat16, float32, float64, complex64, complex128");
	}
}

gompi_op opOf(const c10d::ReduceOp& op, const at::Tensor& t) {
	bool boolean = t.scalar_type() == at::kBool;
	switch (static_cast<c10d::ReduceOp::RedOpType>(op)) {
	case c10d::ReduceOp::SUM: return boolean ? GOMPI_MAX : GOMPI_SUM;
	case c10d::ReduceOp::PRODUCT: return boolean ? GOMPI_MIN : GOMPI_PROD;
	case c10d::ReduceOp::AVG:
		TORCH_CHECK(!boolean, "gompi: ReduceOp.AVG of a tensor of bool");
		return GOMPI_AVG;
	case c10d::ReduceOp::MIN: return GOMPI_MIN;
	case c10d::ReduceOp::MAX: return GOMPI_MAX;
	case c10d::ReduceOp::BAND: return GOMPI_BAND;
	case c10d::ReduceOp::BOR: return GOMPI_BOR;
	case c10d::ReduceOp::BXOR: return GOMPI_BXOR;
	default: TORCH_CHECK(false, "gompi: unknown operator: want SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR");
	}
}

void wantDense(const at::Tensor& t) {
	TORCH_CHECK(t.device().is_cpu(), "gompi: a tensor on ", t.device(), ": want one on cpu");
	TORCH_CHECK(t.layout() == at::kStrided && t.is_non_overlapping_and_dense(),
		"gompi: a tensor of shape ", t.sizes(), " with gaps or overlaps: want a dense one, as contiguous() returns");
}

at::Tensor& only(std::vector<at::Tensor>& tensors) {
	TORCH_CHECK(tensors.size() == 1, "gompi: ", tensors.size(), " tensors: want one");
	return tensors[0];
}

namespace {

// Whether contiguous tensors lie one behind the other.
bool adjoin(const std::vector<at::Tensor>& tensors) {
	auto* end = static_cast<const char*>(tensors[0].data_ptr());
	for (auto& t : tensors) {
		if (!t.is_contiguous() || t.data_ptr() != end || !t.storage().is_alias_of(tensors[0].storage()))
			return false;
		end += t.nbytes();
	}
	return true;
}

void wantAlike(const std::vector<at::Tensor>& tensors) {
	TORCH_CHECK(!tensors.empty(), "gompi: an empty list of tensors");
	for (auto& t : tensors) {
		wantDense(t);
		TORCH_CHECK(t.numel() == tensors[0].numel() && t.scalar_type() == tensors[0].scalar_type(),
			"gompi: a list with ", t.numel(), " elements of ", t.scalar_type(), " and ",
			tensors[0].numel(), " of ", tensors[0].scalar_type(), ": want tensors alike");
	}
}

} // namespace

Flat Flat::toWrite(const std::vector<at::Tensor>& tensors) {
	wantAlike(tensors);
	int64_t n = static_cast<int64_t>(tensors.size()) * tensors[0].numel();
	if (adjoin(tensors))
		return {tensors[0].as_strided({n}, {1}), {}};
	return {at::empty({n}, tensors[0].options()), tensors};
}

Flat Flat::toRead(const std::vector<at::Tensor>& tensors) {
	wantAlike(tensors);
	std::vector<at::Tensor> rows;
	for (auto& t : tensors)
		rows.push_back(t.reshape(-1));
	return {at::cat(rows), {}};
}

void Flat::store() {
	int64_t at = 0;
	for (auto& t : parts) {
		t.copy_(all.narrow(0, at, t.numel()).view(t.sizes()));
		at += t.numel();
	}
}

} // namespace gompi_torch

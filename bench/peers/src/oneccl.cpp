/* oneCCL for mpibench.c: the collectives that it has, on vectors of the host, out of place. */
#include <map>
#include <memory>
#include <string>

#include <mpi.h>
#include <oneapi/ccl.hpp>

extern "C" {
#include "oneccl.h"

static std::unique_ptr<ccl::communicator> comm;
static ccl::datatype type;
static ccl::reduction redop;

void oneccl_start(int rank, int np, const char *type_name, const char *redop_name) {
	static const std::map<std::string, ccl::datatype> types = {
		{"float32", ccl::datatype::float32}, {"float64", ccl::datatype::float64},
		{"int8", ccl::datatype::int8}, {"int16", ccl::datatype::int16}, {"int32", ccl::datatype::int32}, {"int64", ccl::datatype::int64},
		{"uint8", ccl::datatype::uint8}, {"uint16", ccl::datatype::uint16}, {"uint32", ccl::datatype::uint32}, {"uint64", ccl::datatype::uint64},
	};
	static const std::map<std::string, ccl::reduction> redops = {
		{"sum", ccl::reduction::sum}, {"prod", ccl::reduction::prod}, {"min", ccl::reduction::min}, {"max", ccl::reduction::max},
	};
	type = types.at(type_name), redop = redops.at(redop_name);
	ccl::init();
	ccl::kvs::address_type address;
	ccl::shared_ptr_class<ccl::kvs> kvs;
	if (rank == 0) {
		kvs = ccl::create_main_kvs();
		address = kvs->get_address();
	}
	MPI_Bcast(address.data(), address.size(), MPI_BYTE, 0, MPI_COMM_WORLD);
	if (rank != 0)
		kvs = ccl::create_kvs(address);
	comm.reset(new ccl::communicator(ccl::create_communicator(np, rank, kvs)));
}

void oneccl_barrier(void) { ccl::barrier(*comm).wait(); }
void oneccl_bcast(void *data, long n) { ccl::broadcast(data, n, type, 0, *comm).wait(); }
void oneccl_reduce(const void *send, void *recv, long n) { ccl::reduce(send, recv, n, type, redop, 0, *comm).wait(); }
void oneccl_allreduce(const void *send, void *recv, long n) { ccl::allreduce(send, recv, n, type, redop, *comm).wait(); }
void oneccl_allgather(const void *send, void *recv, long n) { ccl::allgather(send, recv, n, type, *comm).wait(); }
void oneccl_reduce_scatter(const void *send, void *recv, long n) { ccl::reduce_scatter(send, recv, n, type, redop, *comm).wait(); }
void oneccl_alltoall(const void *send, void *recv, long n) { ccl::alltoall(send, recv, n, type, *comm).wait(); }
}

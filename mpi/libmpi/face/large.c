/* Forms for large counts that are not generated. */
#include "face.h"
#ifndef OPEN_MPI

void gompi_large_op(gompi_word fn, void *in, void *inout, MPI_Count n, MPI_Datatype *type)
{
	((MPI_User_function_c *)FUNCTION(fn))(in, inout, &n, type);
}

int PMPI_Op_create(MPI_User_function *, int, MPI_Op *), PMPI_Type_get_envelope(MPI_Datatype, int *, int *, int *, int *),
	PMPI_Type_get_contents(MPI_Datatype, int, int, int, int *, MPI_Aint *, MPI_Datatype *);
GOMPI_ALIAS(Op_create_c)
int PMPI_Op_create_c(MPI_User_function_c *fn, int commute, MPI_Op *op)
{
	int error = PMPI_Op_create((MPI_User_function *)fn, commute, op);
	if (!error)
		gompi_core.set_language(KIND_op, (int)IN_op(*op), GOMPI_LARGE);
	return error;
}

GOMPI_ALIAS(Register_datarep_c)
int PMPI_Register_datarep_c(const char *datarep, MPI_Datarep_conversion_function_c *reads,
                            MPI_Datarep_conversion_function_c *writes, MPI_Datarep_extent_function *extent, void *extra)
{
	(void)reads, (void)writes; /* which no data representation has */
	return PMPI_Register_datarep(datarep, NULL, NULL, extent, extra);
}

/* All datatypes have their counts among the integers. */
GOMPI_ALIAS(Type_get_envelope_c)
int PMPI_Type_get_envelope_c(MPI_Datatype type, MPI_Count *ni, MPI_Count *na, MPI_Count *nc, MPI_Count *nt, int *combiner)
{
	int i = 0, a = 0, t = 0, error = PMPI_Type_get_envelope(type, &i, &a, &t, combiner);
	*ni = i, *na = a, *nc = 0, *nt = t;
	return error;
}

GOMPI_ALIAS(Type_get_contents_c)
int PMPI_Type_get_contents_c(MPI_Datatype type, MPI_Count ni, MPI_Count na, MPI_Count nc, MPI_Count nt, int integers[],
                             MPI_Aint addresses[], MPI_Count counts[], MPI_Datatype types[])
{
	(void)nc, (void)counts;
	return PMPI_Type_get_contents(type, (int)ni, (int)na, (int)nt, integers, addresses, types);
}
#endif

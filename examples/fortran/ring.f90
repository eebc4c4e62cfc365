! A number goes around all ranks, and each adds its own: gompirun -np 4 ./ring
program ring
  use mpi
  implicit none
  integer :: rank, ranks, length, ierr, sum = 0
  character(MPI_MAX_LIBRARY_VERSION_STRING) :: library

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  if (rank > 0) call MPI_Recv(sum, 1, MPI_INTEGER, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  sum = sum + rank
  if (rank < ranks - 1) then
    call MPI_Send(sum, 1, MPI_INTEGER, rank + 1, 0, MPI_COMM_WORLD, ierr)
  else
    call MPI_Get_library_version(library, length, ierr)
    print '(3(a, i0), 2a)', 'around ', ranks, ' ranks: ', sum, ', want ', ranks * (ranks - 1) / 2, ', on ', library(:length)
  end if
  call MPI_Finalize(ierr)
end program

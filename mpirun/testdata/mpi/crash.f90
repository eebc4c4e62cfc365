! Rank 1 reads an integer that is nowhere.
program crash
  use mpi
  integer :: error, rank
  integer, pointer :: nowhere
  nullify(nowhere)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  if (rank == 1) call middle(nowhere) ! main
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call MPI_Finalize(error)
contains
  subroutine middle(p)
    integer, pointer :: p
    print *, p + 1 ! read
  end subroutine
end program

! MPI 3 with "use mpi_f08": handles with types, and calls without an error.
module counts
  use mpi_f08
  implicit none
  integer :: handled = 0, of_file = 0, of_win = 0
  integer(kind=MPI_ADDRESS_KIND) :: deleted = 0
contains
  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(*), intent(in) :: what
    if (ok) return
    print '(2A)', 'f08: wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 3)
  end subroutine
  subroutine handler(comm, code)
    type(MPI_Comm) :: comm
    integer :: code, class
    call MPI_Error_class(code, class)
    if (comm == MPI_COMM_WORLD .and. class == MPI_ERR_TAG) handled = handled + 1
  end subroutine
  subroutine file_handler(f, code)
    type(MPI_File) :: f
    integer :: code, class
    call MPI_Error_class(code, class)
    if (f /= MPI_FILE_NULL .and. class == MPI_ERR_ARG) of_file = of_file + 1
  end subroutine
  subroutine win_handler(w, code)
    type(MPI_Win) :: w
    integer :: code, class
    call MPI_Error_class(code, class)
    if (w /= MPI_WIN_NULL .and. class == MPI_ERR_RMA_SYNC) of_win = of_win + 1
  end subroutine
  subroutine copy(h, key, extra, in, out, flag, ierr)
    type(MPI_Comm) :: h
    integer :: key, ierr
    integer(kind=MPI_ADDRESS_KIND) :: extra, in, out
    logical :: flag
    out = in + extra
    flag = .true.
    ierr = MPI_SUCCESS
  end subroutine
  subroutine drop(h, key, value, extra, ierr)
    type(MPI_Comm) :: h
    integer :: key, ierr
    integer(kind=MPI_ADDRESS_KIND) :: extra, value
    deleted = value + extra
    ierr = MPI_SUCCESS
  end subroutine
  subroutine add(in, inout, n, type)
    use, intrinsic :: iso_c_binding
    type(c_ptr), value :: in, inout
    integer :: n
    type(MPI_Datatype) :: type
    double precision, pointer :: a(:), b(:)
    call check(type == MPI_DOUBLE_PRECISION, 'type of the operator')
    call c_f_pointer(in, a, [n])
    call c_f_pointer(inout, b, [n])
    b = a + b
  end subroutine
end module

program main
  use counts
  implicit none
  integer, parameter :: wide = MPI_ADDRESS_KIND
  integer :: rank, size, key, left, right, ierr, i
  integer(kind=wide) :: value, places(2)
  logical :: flag
  type(MPI_Comm) :: comm, shared
  type(MPI_Status) :: status, statuses(2)
  type(MPI_Request) :: requests(2)
  type(MPI_Errhandler) :: errhandler
  type(MPI_Op) :: op
  type(MPI_File) :: file
  type(MPI_Win) :: win
  integer, asynchronous :: cells(3), put
  integer(kind=MPI_OFFSET_KIND) :: place
  character(1000) :: name
  type(MPI_Datatype) :: type
  ! MPI_BOTTOM stands for these: the compiler must not keep them in registers.
  double precision, volatile :: x
  integer, volatile :: n
  double precision :: y
  integer, asynchronous :: in, out

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  right = mod(rank + 1, size)
  left = mod(rank + size - 1, size)

  out = rank
  call MPI_Irecv(in, 1, MPI_INTEGER, left, MPI_ANY_TAG, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(out, 1, MPI_INTEGER, right, 6, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, statuses)
  call check(in == left .and. statuses(1)%MPI_SOURCE == left .and. statuses(1)%MPI_TAG == 6, 'waitall')
  call MPI_Get_count(statuses(1), MPI_INTEGER, n)
  call check(n == 1, 'count')
  call check(requests(1) == MPI_REQUEST_NULL, 'request')
  call MPI_Irecv(in, 1, MPI_INTEGER, left, 6, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(out, 1, MPI_INTEGER, right, 6, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, right, 2, n, 1, MPI_INTEGER, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call check(n == left, 'sendrecv')
  if (rank == 0) call MPI_Send(rank, 1, MPI_INTEGER, size - 1, 3, MPI_COMM_WORLD)
  if (rank == size - 1) then
    call MPI_Probe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, status)
    call check(status%MPI_SOURCE == 0, 'probe')
    call MPI_Recv(n, 1, MPI_INTEGER, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end if

  ! MPI_BOTTOM and MPI_IN_PLACE.
  call MPI_Get_address(x, places(1))
  call MPI_Get_address(n, places(2))
  call MPI_Type_create_struct(2, [1, 1], places, [MPI_DOUBLE_PRECISION, MPI_INTEGER], type)
  call MPI_Type_commit(type)
  x = rank
  n = -rank
  call MPI_Bcast(MPI_BOTTOM, 1, type, size - 1, MPI_COMM_WORLD)
  call check(x == size - 1 .and. n == 1 - size, 'bottom')
  call MPI_Type_free(type)
  y = 1
  call MPI_Allreduce(MPI_IN_PLACE, y, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  call check(y == size, 'in place')
  call MPI_Op_create(add, .true., op)
  y = rank
  call MPI_Allreduce(y, x, 1, MPI_DOUBLE_PRECISION, op, MPI_COMM_WORLD)
  call check(x == size * (size - 1) / 2, 'user operator')
  call MPI_Op_free(op)

  call MPI_Comm_create_keyval(copy, drop, key, 11_wide)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, key, 30_wide)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_get_attr(comm, key, value, flag)
  call check(flag .and. value == 41, 'copied attribute')
  call MPI_Comm_free(comm)
  call check(deleted == 52, 'deleted attribute')
  call check(comm == MPI_COMM_NULL, 'comm_free')
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, key)
  call MPI_Comm_free_keyval(key)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag)
  call check(flag .and. value >= 32767, 'tag_ub')

  call MPI_Comm_create_errhandler(handler, errhandler)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler)
  call MPI_Send(n, 1, MPI_INTEGER, right, -5, MPI_COMM_WORLD, ierr)
  call check(ierr /= MPI_SUCCESS .and. handled == 1, 'error handler')
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL)
  call MPI_Errhandler_free(errhandler)

  call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, shared)
  call MPI_Comm_size(shared, n)
  call check(n == size, 'split_type')
  call MPI_Comm_split(MPI_COMM_WORLD, rank / 2, 0, comm)
  call MPI_Comm_rank(comm, i)
  call check(i == mod(rank, 2), 'split')

  call get_command_argument(1, name)
  call MPI_File_open(MPI_COMM_WORLD, trim(name), MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, &
    MPI_INFO_NULL, file)
  call MPI_File_set_view(file, 8_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'external32', MPI_INFO_NULL)
  n = rank
  call MPI_File_write_ordered(file, n, 1, MPI_INTEGER, status)
  call MPI_File_sync(file)
  call MPI_Barrier(MPI_COMM_WORLD)
  place = right
  call MPI_File_read_at_all(file, place, n, 1, MPI_INTEGER, status)
  call MPI_Get_count(status, MPI_INTEGER, i)
  call check(n == right .and. i == 1, 'what is in the file')
  call MPI_File_get_size(file, place)
  call check(place == 8 + 4 * size, 'size of the file')
  call MPI_File_create_errhandler(file_handler, errhandler)
  call MPI_File_set_errhandler(file, errhandler)
  call MPI_File_seek(file, -5_MPI_OFFSET_KIND, MPI_SEEK_SET, ierr)
  call check(ierr /= MPI_SUCCESS .and. of_file == 1, 'error handler of the file')
  call MPI_Errhandler_free(errhandler)
  call MPI_File_close(file)
  call check(file == MPI_FILE_NULL, 'close')

  call MPI_Win_create(cells, 12_wide, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag)
  call check(flag .and. value == 12, 'size of the window')
  call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag)
  call check(flag .and. value == 4, 'unit of the window')
  call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, key, 0_wide)
  call MPI_Win_set_attr(win, key, -3_wide)
  call MPI_Win_get_attr(win, key, value, flag)
  call check(flag .and. value == -3, 'attribute of the window')
  call MPI_Win_create_errhandler(win_handler, errhandler)
  call MPI_Win_set_errhandler(win, errhandler)
  call MPI_Put(n, 1, MPI_INTEGER, right, 1_wide, 1, MPI_INTEGER, win, ierr)
  call check(ierr /= MPI_SUCCESS .and. of_win == 1, 'error handler of the window')
  call MPI_Errhandler_free(errhandler)
  call MPI_Win_fence(0, win)
  put = 10 * rank
  call MPI_Put(put, 1, MPI_INTEGER, right, 2_wide, 1, MPI_INTEGER, win)
  call MPI_Win_fence(0, win)
  call check(cells(3) == 10 * left, 'put')
  call MPI_Win_free(win)
  call MPI_Win_free_keyval(key)

  call MPI_Finalize()
  if (rank == 0) print '(A)', 'f08: no errors'
end program

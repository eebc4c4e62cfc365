! MPI 2 with "use mpi": attributes as long as an address, error handlers, groups, topologies, generalized
! requests, names.
module counts
  use mpi
  implicit none
  integer :: handled = 0, of_file = 0, queried = 0, freed = 0
  integer(kind=MPI_ADDRESS_KIND) :: deleted = 0
contains
  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(*), intent(in) :: what
    integer :: ierr
    if (ok) return
    print '(2A)', 'module: wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 3, ierr)
  end subroutine
  subroutine handler(comm, code)
    integer :: comm, code, class, ierr
    call MPI_Error_class(code, class, ierr)
    if (comm == MPI_COMM_WORLD .and. class == MPI_ERR_RANK) handled = handled + 1
  end subroutine
  subroutine file_handler(f, code)
    integer :: f, code, class, ierr
    call MPI_Error_class(code, class, ierr)
    if (class == MPI_ERR_ARG) of_file = f
  end subroutine
  subroutine copy(h, key, extra, in, out, flag, ierr)
    integer :: h, key, ierr
    integer(kind=MPI_ADDRESS_KIND) :: extra, in, out
    logical :: flag
    out = in + extra
    flag = .true.
    ierr = MPI_SUCCESS
  end subroutine
  subroutine drop(h, key, value, extra, ierr)
    integer :: h, key, ierr
    integer(kind=MPI_ADDRESS_KIND) :: extra, value
    deleted = value + extra
    ierr = MPI_SUCCESS
  end subroutine
  subroutine query(extra, status, ierr)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    integer :: status(MPI_STATUS_SIZE), ierr
    queried = queried + int(extra)
    status(MPI_SOURCE) = 4
    status(MPI_TAG) = 5
    call MPI_Status_set_elements(status, MPI_INTEGER, 6, ierr)
    call MPI_Status_set_cancelled(status, .false., ierr)
  end subroutine
  subroutine release(extra, ierr)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    integer :: ierr
    freed = freed + int(extra)
    ierr = MPI_SUCCESS
  end subroutine
  subroutine cancel(extra, complete, ierr)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierr
    ierr = MPI_SUCCESS
  end subroutine
  subroutine first(in, inout, n, type)
    integer :: n, type, in(n), inout(n)
    inout = in
  end subroutine
end module

program main
  use counts
  implicit none
  integer, parameter :: wide = MPI_ADDRESS_KIND
  integer :: ierr, rank, size, n, key, comm, type, errhandler, other, group, world, ring, request, op, info, lo, hi
  integer :: status(MPI_STATUS_SIZE), dims(1), ranks(1), pairs(2), pair(2)
  integer(kind=wide) :: value, extra, lb, extent
  integer, allocatable :: counts_(:), displs(:), all(:)
  logical :: flag, periods(1)
  character(len=MPI_MAX_OBJECT_NAME) :: name
  character(len=30) :: text
  integer :: file, i
  integer(kind=MPI_OFFSET_KIND) :: place
  character(len=1000) :: path

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, n, ierr)
  call check(n >= MPI_THREAD_SINGLE, 'thread level')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)

  ! Names have blanks at their end, which are no part of them.
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
  call MPI_Comm_set_name(comm, 'copy   ', ierr)
  call MPI_Comm_get_name(comm, name, n, ierr)
  call check(n == 4 .and. name == 'copy', 'name')

  ! Attributes.
  extra = 1000000000000_wide
  call MPI_Comm_create_keyval(copy, drop, key, extra, ierr)
  call MPI_Comm_set_attr(comm, key, -7000000000000_wide, ierr)
  call MPI_Comm_get_attr(comm, key, value, flag, ierr)
  call check(flag .and. value == -7000000000000_wide, 'attribute')
  call MPI_Comm_dup(comm, other, ierr)
  call MPI_Comm_get_attr(other, key, value, flag, ierr)
  call check(flag .and. value == -6000000000000_wide, 'copied attribute')
  call MPI_Comm_free(other, ierr)
  call check(deleted == -5000000000000_wide, 'deleted attribute')
  call MPI_Comm_free_keyval(key, ierr)
  call check(key == MPI_KEYVAL_INVALID, 'keyval')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
  call check(flag .and. value >= 32767, 'tag_ub')
  call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, drop, key, extra, ierr)
  call MPI_Type_vector(2, 1, 3, MPI_INTEGER, type, ierr)
  call MPI_Type_set_attr(type, key, 9_wide, ierr)
  call MPI_Type_dup(type, other, ierr)
  call MPI_Type_get_attr(other, key, value, flag, ierr)
  call check(flag .and. value == 9, 'attribute of a type')
  call MPI_Type_get_extent(other, lb, extent, ierr)
  call check(lb == 0 .and. extent == 16, 'extent')
  call MPI_Type_free(other, ierr)
  call check(deleted == 1000000000009_wide, 'deleted attribute of a type')
  call MPI_Type_free(type, ierr)

  ! Error handlers.
  call MPI_Comm_create_errhandler(handler, errhandler, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler, ierr)
  call MPI_Errhandler_free(errhandler, ierr)
  call check(errhandler == MPI_ERRHANDLER_NULL, 'errhandler_free')
  call MPI_Send(n, 1, MPI_INTEGER, size, 0, MPI_COMM_WORLD, ierr)
  call check(ierr /= MPI_SUCCESS .and. handled == 1, 'error handler')
  call MPI_Comm_get_errhandler(MPI_COMM_WORLD, errhandler, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler, ierr)
  call MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_RANK, ierr)
  call check(handled == 2, 'call_errhandler')
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call MPI_Send(n, 1, MPI_INTEGER, size, 0, MPI_COMM_WORLD, ierr)
  call check(ierr /= MPI_SUCCESS .and. handled == 2, 'errors_return')

  ! Groups, split by colour, and a ring.
  call MPI_Comm_group(MPI_COMM_WORLD, world, ierr)
  call MPI_Group_incl(world, 1, [size - 1], group, ierr)
  call MPI_Group_translate_ranks(group, 1, [0], world, ranks, ierr)
  call check(ranks(1) == size - 1, 'translate_ranks')
  call MPI_Comm_create(MPI_COMM_WORLD, group, other, ierr)
  call check((other == MPI_COMM_NULL) .neqv. (rank == size - 1), 'comm_create')
  n = MPI_UNDEFINED
  if (rank == 0) n = 1
  call MPI_Comm_split(MPI_COMM_WORLD, n, 0, other, ierr)
  call check((other == MPI_COMM_NULL) .neqv. (rank == 0), 'split')
  dims = 0
  call MPI_Dims_create(size, 1, dims, ierr)
  call MPI_Cart_create(MPI_COMM_WORLD, 1, dims, [.true.], .false., ring, ierr)
  call MPI_Cart_get(ring, 1, dims, periods, ranks, ierr)
  call check(dims(1) == size .and. periods(1) .and. ranks(1) == rank, 'cart_get')
  call MPI_Cart_shift(ring, 0, 1, lo, hi, ierr)
  call check(hi == mod(rank + 1, size), 'cart_shift')

  ! Collectives.
  allocate(counts_(size), displs(size), all(size * (size + 1) / 2))
  counts_ = [(n, n = 1, size)]
  displs = [(n * (n - 1) / 2, n = 1, size)]
  all = -1
  all(displs(rank + 1) + 1:displs(rank + 1) + rank + 1) = rank
  call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts_, displs, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  do n = 1, size
    call check(all(displs(n) + n) == n - 1, 'allgatherv')
  end do
  call MPI_Op_create(first, .false., op, ierr)
  call MPI_Allreduce(rank + 1, n, 1, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
  call check(n == 1, 'operator that does not commute')
  call MPI_Iallreduce(rank + 2, n, 1, MPI_INTEGER, op, MPI_COMM_WORLD, request, ierr)
  call MPI_Op_free(op, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call check(n == 2, 'operator that was freed')
  pair = [rank, -rank]
  call MPI_Allreduce(pair, pairs, 1, MPI_2INTEGER, MPI_MAXLOC, MPI_COMM_WORLD, ierr)
  call check(pairs(1) == size - 1 .and. pairs(2) == 1 - size, 'maxloc')

  ! A generalized request.
  extra = 3
  call MPI_Grequest_start(query, release, cancel, extra, request, ierr)
  call MPI_Test(request, flag, status, ierr)
  call check(.not. flag, 'test')
  call MPI_Grequest_complete(request, ierr)
  call MPI_Wait(request, status, ierr)
  call check(queried == 3 .and. freed == 3, 'functions of the request')
  call MPI_Get_count(status, MPI_INTEGER, n, ierr)
  call check(status(MPI_TAG) == 5 .and. n == 6, 'status of the request')

  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, 'key', '  value  ', ierr)
  call MPI_Info_get(info, 'key ', 30, text, flag, ierr)
  call check(flag .and. text == 'value', 'info')
  call MPI_Info_free(info, ierr)
  call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, type, ierr)
  call MPI_Type_size(type, n, ierr)
  call check(n == 8, 'match_size')

  ! Each rank's number in a file.
  call get_command_argument(1, path)
  call MPI_File_open(MPI_COMM_WORLD, trim(path), MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, &
    MPI_INFO_NULL, file, ierr)
  place = 4
  call MPI_File_set_view(file, place, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierr)
  place = rank
  call MPI_File_write_at_all(file, place, rank, 1, MPI_INTEGER, status, ierr)
  call MPI_File_sync(file, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  place = mod(rank + 1, size)
  call MPI_File_iread_at(file, place, n, 1, MPI_INTEGER, request, ierr)
  call MPI_Wait(request, status, ierr)
  call check(ierr == MPI_SUCCESS .and. n == mod(rank + 1, size), 'what is in the file')
  call MPI_File_get_view(file, place, type, n, text, ierr)
  call check(place == 4 .and. type == MPI_INTEGER .and. n == MPI_INTEGER .and. text == 'native', 'get_view')
  call MPI_File_create_errhandler(file_handler, errhandler, ierr)
  call MPI_File_set_errhandler(file, errhandler, ierr)
  place = -1
  call MPI_File_read_at(file, place, n, 1, MPI_INTEGER, status, ierr)
  call check(ierr /= MPI_SUCCESS .and. of_file == file, 'error handler of the file')
  call MPI_Errhandler_free(errhandler, ierr)
  call MPI_File_close(file, ierr)
  call check(file == MPI_FILE_NULL, 'close')
  call MPI_File_open(MPI_COMM_WORLD, trim(path), MPI_MODE_RDONLY, MPI_INFO_NULL, file, ierr)
  call MPI_Error_class(ierr, n, i)
  call check(n == MPI_ERR_NO_SUCH_FILE, 'a file that is not there')

  call MPI_Comm_free(comm, ierr)
  call MPI_Finalize(ierr)
  if (rank == 0) print '(A)', 'module: no errors'
end program

C     MPI 1 in fixed form: mpif.h, INTEGER attributes, MPI_BOTTOM.
      program main
      implicit none
      include 'mpif.h'
      integer ierr, rank, size, i, n, left, right
      integer status(MPI_STATUS_SIZE)
      integer statuses(MPI_STATUS_SIZE, 2), requests(2)
      integer key, value, freed
      integer extra, comm, type, lengths(2), types(2)
      integer(kind=MPI_ADDRESS_KIND) places(2)
      double precision x(4), y
C     MPI_BOTTOM stands for these: not in registers.
      volatile x, n
      logical flag
      character*(MPI_MAX_PROCESSOR_NAME) name
      character*(MPI_MAX_ERROR_STRING) text
      external copy, drop, larger
      integer op
      common /counts/ freed
      freed = 0

      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierr)
      right = mod(rank + 1, size)
      left = mod(rank + size - 1, size)

      call MPI_GET_PROCESSOR_NAME(name, n, ierr)
      call check(n .gt. 0 .and. name(n:n) .ne. ' ', 'processor name')
      call check(name(n+1:) .eq. ' ', 'blanks behind the name')

C     Messages.
      do i = 1, 4
         x(i) = rank + i
      end do
      call MPI_SENDRECV_REPLACE(x, 4, MPI_DOUBLE_PRECISION, right, 7,
     &     left, 7, MPI_COMM_WORLD, status, ierr)
      call check(x(4) .eq. left + 4, 'sendrecv_replace')
      call check(status(MPI_SOURCE) .eq. left, 'source')
      call check(status(MPI_TAG) .eq. 7, 'tag')
      call MPI_GET_COUNT(status, MPI_DOUBLE_PRECISION, n, ierr)
      call check(n .eq. 4, 'count')
      call MPI_IRECV(n, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG,
     &     MPI_COMM_WORLD, requests(1), ierr)
      call MPI_ISEND(rank, 1, MPI_INTEGER, right, 8, MPI_COMM_WORLD,
     &     requests(2), ierr)
      call MPI_WAITALL(2, requests, statuses, ierr)
      call check(n .eq. left, 'isend')
      call check(statuses(MPI_SOURCE, 1) .eq. left, 'statuses')
      call check(requests(1) .eq. MPI_REQUEST_NULL, 'request')
      call MPI_IRECV(n, 1, MPI_INTEGER, left, 9, MPI_COMM_WORLD,
     &     requests(1), ierr)
      call MPI_ISEND(rank, 1, MPI_INTEGER, right, 9, MPI_COMM_WORLD,
     &     requests(2), ierr)
      call MPI_WAITANY(2, requests, i, MPI_STATUS_IGNORE, ierr)
      call check(i .ge. 1 .and. i .le. 2, 'waitany')
      call MPI_WAITALL(2, requests, MPI_STATUSES_IGNORE, ierr)
      call check(n .eq. left, 'waitall')
      call MPI_SEND(rank, 1, MPI_INTEGER, MPI_PROC_NULL, 0,
     &     MPI_COMM_WORLD, ierr)
      call MPI_RECV(n, 1, MPI_INTEGER, MPI_PROC_NULL, 0,
     &     MPI_COMM_WORLD, status, ierr)
      call check(status(MPI_SOURCE) .eq. MPI_PROC_NULL, 'proc_null')

C     A datatype with addresses.
      call MPI_GET_ADDRESS(x, places(1), ierr)
      call MPI_GET_ADDRESS(n, places(2), ierr)
      lengths(1) = 2
      lengths(2) = 1
      types(1) = MPI_DOUBLE_PRECISION
      types(2) = MPI_INTEGER
      call MPI_TYPE_CREATE_STRUCT(2, lengths, places, types, type, ierr)
      call MPI_TYPE_COMMIT(type, ierr)
      x(1) = rank
      x(2) = -rank
      n = 10 * rank
      call MPI_BCAST(MPI_BOTTOM, 1, type, 1, MPI_COMM_WORLD, ierr)
      call check(x(1) .eq. 1 .and. x(2) .eq. -1, 'bottom')
      call check(n .eq. 10, 'bottom, second')
      call MPI_TYPE_FREE(type, ierr)
      call check(type .eq. MPI_DATATYPE_NULL, 'type_free')

C     Reductions.
      y = rank
      call MPI_ALLREDUCE(MPI_IN_PLACE, y, 1, MPI_DOUBLE_PRECISION,
     &     MPI_SUM, MPI_COMM_WORLD, ierr)
      call check(y .eq. size * (size - 1) / 2, 'in place')
      call MPI_OP_CREATE(larger, .true., op, ierr)
      call MPI_ALLREDUCE(rank, n, 1, MPI_INTEGER, op,
     &     MPI_COMM_WORLD, ierr)
      call check(n .eq. size - 1, 'user operator')
      call MPI_OP_FREE(op, ierr)

C     Attributes.
      call MPI_ATTR_GET(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
      call check(flag .and. value .ge. 32767, 'tag_ub')
      extra = 5
      call MPI_KEYVAL_CREATE(copy, drop, key, extra, ierr)
      call MPI_ATTR_GET(MPI_COMM_WORLD, key, value, flag, ierr)
      call check(.not. flag, 'no attribute')
      call MPI_ATTR_PUT(MPI_COMM_WORLD, key, -40, ierr)
      call MPI_ATTR_GET(MPI_COMM_WORLD, key, value, flag, ierr)
      call check(flag .and. value .eq. -40, 'attribute')
      call MPI_COMM_DUP(MPI_COMM_WORLD, comm, ierr)
      call MPI_ATTR_GET(comm, key, value, flag, ierr)
      call check(flag .and. value .eq. -35, 'copied attribute')
      call MPI_COMM_FREE(comm, ierr)
      call check(freed .eq. -35 + 5, 'deleted attribute')
      call MPI_ATTR_DELETE(MPI_COMM_WORLD, key, ierr)
      call check(freed .eq. -30 - 35, 'attr_delete')
      call MPI_KEYVAL_FREE(key, ierr)
      call MPI_KEYVAL_CREATE(MPI_DUP_FN, MPI_NULL_DELETE_FN, key, extra,
     &     ierr)
      call MPI_ATTR_PUT(MPI_COMM_WORLD, key, 3, ierr)
      call MPI_COMM_SPLIT(MPI_COMM_WORLD, mod(rank, 2), -rank, comm,
     &     ierr)
      call MPI_ATTR_GET(comm, key, value, flag, ierr)
      call check(.not. flag, 'split copies no attributes')
      call MPI_COMM_RANK(comm, n, ierr)
      call check(n .eq. (size - 1 - rank) / 2, 'split')
      call MPI_COMM_FREE(comm, ierr)

      call MPI_ERROR_STRING(MPI_ERR_TRUNCATE, text, n, ierr)
      call check(n .gt. 0 .and. text(n+1:) .eq. ' ', 'error string')
      call MPI_FINALIZE(ierr)
      if (rank .eq. 0) print '(A)', 'mpif: no errors'
      end

      subroutine check(ok, what)
      logical ok
      character*(*) what
      include 'mpif.h'
      integer ierr
      if (ok) return
      print '(2A)', 'mpif: wrong: ', what
      call MPI_ABORT(MPI_COMM_WORLD, 3, ierr)
      end

      subroutine copy(comm, key, extra, in, out, flag, ierr)
      integer comm, key, extra, in, out, ierr
      logical flag
      include 'mpif.h'
      out = in + extra
      flag = .true.
      ierr = MPI_SUCCESS
      end

      subroutine drop(comm, key, value, extra, ierr)
      integer comm, key, value, extra, ierr, freed
      common /counts/ freed
      include 'mpif.h'
      freed = freed + value + extra
      ierr = MPI_SUCCESS
      end

      subroutine larger(in, inout, n, type)
      integer n, type, in(n), inout(n), i
      include 'mpif.h'
      call check(type .eq. MPI_INTEGER, 'type of the operator')
      do i = 1, n
         inout(i) = max(in(i), inout(i))
      end do
      end

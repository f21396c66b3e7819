// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bad_response DEVICE wait: create a CQ, and let the kernel wait forever when
 * it writes the driver's part of the response. Report that and wait.
 *
 * bad_response DEVICE fault: create a CQ, a QP and an SRQ, each in vain, as
 * there is no memory for that part.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "open_device.h"

/* Bytes of the driver's part: more than any driver has */
#define DRIVER_ROOM 256
/* A multiple of the size of any page */
#define HALF 65536

static struct ibv_context *context;
static char *halves;                    /* two; the second one is bad */

/* Where the core's part of a response ends with the first half */
static uint64_t response_of(size_t size)
{
    return (uintptr_t)halves + HALF - size;
}

/*
 * Write a command, whose response has @response_size bytes of the core. Returns
 * whether the kernel accepts it.
 */
static bool command(uint32_t number, const void *cmd, size_t size,
                    size_t response_size)
{
    struct {
        struct ib_uverbs_cmd_hdr hdr;
        char cmd[256];
    } request = {
        .hdr = {
            .command = number,
            .in_words = (sizeof(request.hdr) + size) / 4,
            .out_words = (response_size + DRIVER_ROOM) / 4,
        },
    };

    memcpy(request.cmd, cmd, size);
    errno = 0;
    return write(context->cmd_fd, &request, sizeof(request.hdr) + size) > 0;
}

static bool create_cq(void)
{
    const struct ib_uverbs_create_cq cmd = {
        .response = response_of(sizeof(struct ib_uverbs_create_cq_resp)),
        .cqe = 16,
        .comp_channel = -1,
    };

    return command(IB_USER_VERBS_CMD_CREATE_CQ, &cmd, sizeof(cmd),
                   sizeof(struct ib_uverbs_create_cq_resp));
}

static bool create_srq(const struct ibv_pd *pd)
{
    const struct ib_uverbs_create_srq cmd = {
        .response = response_of(sizeof(struct ib_uverbs_create_srq_resp)),
        .pd_handle = pd->handle,
        .max_wr = 16,
        .max_sge = 1,
    };

    return command(IB_USER_VERBS_CMD_CREATE_SRQ, &cmd, sizeof(cmd),
                   sizeof(struct ib_uverbs_create_srq_resp));
}

static bool create_qp(const struct ibv_pd *pd, const struct ibv_cq *cq)
{
    const struct ib_uverbs_create_qp cmd = {
        .response = response_of(sizeof(struct ib_uverbs_create_qp_resp)),
        .pd_handle = pd->handle,
        .send_cq_handle = cq->handle,
        .recv_cq_handle = cq->handle,
        .max_send_wr = 16,
        .max_recv_wr = 16,
        .max_send_sge = 1,
        .max_recv_sge = 1,
        .qp_type = IBV_QPT_RC,
    };

    return command(IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd),
                   sizeof(struct ib_uverbs_create_qp_resp));
}

static int expect_fault(const char *what, bool accepted)
{
    if (accepted || errno != EFAULT) {
        fprintf(stderr, "%s: %s, not EFAULT\n", what, strerror(errno));
        return 1;
    }
    printf("%s: refused\n", what);
    return 0;
}

static int fault(void)
{
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);

    if (!pd || !cq || mprotect(halves + HALF, HALF, PROT_NONE)) {
        perror("bad_response");
        return 1;
    }
    return expect_fault("CREATE_CQ", create_cq()) ||
           expect_fault("CREATE_SRQ", create_srq(pd)) ||
           expect_fault("CREATE_QP", create_qp(pd, cq)) ||
           ibv_destroy_cq(cq) || ibv_dealloc_pd(pd);
}

/* Returns a descriptor that reports accesses to the second half, which wait. */
static int watch_half(void)
{
    struct uffdio_api api = { .api = UFFD_API };
    struct uffdio_register range = {
        .range = { .start = (uintptr_t)halves + HALF, .len = HALF },
        .mode = UFFDIO_REGISTER_MODE_MISSING,
    };
    int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
        ioctl(fd, UFFDIO_REGISTER, &range)) {
        return -1;
    }
    return fd;
}

static void *report(void *fd)
{
    struct uffd_msg message;

    if (read(*(int *)fd, &message, sizeof(message)) == sizeof(message)) {
        printf("the kernel waits\n");
        fflush(stdout);
    }
    return NULL;
}

static int wait_forever(void)
{
    pthread_t thread;
    int fd = watch_half();

    if (fd < 0 || pthread_create(&thread, NULL, report, &fd)) {
        perror("userfaultfd");
        return 1;
    }
    create_cq();
    fprintf(stderr, "the kernel did not wait\n");
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: bad_response DEVICE wait|fault\n");
        return 1;
    }
    context = open_device(argv[1]);
    halves = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!context || halves == MAP_FAILED) {
        perror("bad_response");
        return 1;
    }
    return strcmp(argv[2], "wait") ? fault() : wait_forever();
}

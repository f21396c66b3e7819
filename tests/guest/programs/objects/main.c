/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rdma_objects -d DEVICE -g GID-INDEX CASE [ARGUMENTS] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "objects.h"

static const struct {
    const char *name;
    case_fn *run;
} cases[] = {
    { "srq-shared", srq_shared },
    { "srq-full", srq_full },
    { "srq-limit", srq_limit },
    { "srq-destroy-qp", srq_destroy_qp },
    { "srq-reset-qp", srq_reset_qp },
    { "srq-last-wqe", srq_last_wqe },
    { "srq-in-use", srq_in_use },
    { "srq-datagrams", srq_datagrams },
    { "srq-deep", srq_deep },
    { "srq-deep-list", srq_deep_list },
    { "srq-deep-limit", srq_deep_limit },
    { "srq-deep-destroy-qp", srq_deep_destroy_qp },
    { "srq-deep-reset-qp", srq_deep_reset_qp },
    { "mw-type-1", mw_type_1 },
    { "mw-type-2", mw_type_2 },
    { "mw-belongs-to-qp", mw_belongs_to_qp },
    { "mw-holds-region", mw_holds_region },
    { "mr-large", mr_large },
    { "mr-iova", mr_iova },
    { "mr-rereg", mr_rereg },
    { "mr-rereg-read-only", mr_rereg_read_only },
    { "mr-time", mr_time },
    { "ah-from-wc", ah_from_wc },
    { "values-wide", values_wide },
    { "values-refused", values_refused },
    { "values-ignored", values_ignored },
    { "caps", caps },
    { "contexts", contexts },
    { "event-unacknowledged", event_unacknowledged },
    { "cq-foreign-completion", cq_foreign_completion },
    { "cq-receive-of-srq", cq_receive_of_srq },
    { "rights-of-the-kernel", rights_of_the_kernel },
    { "mcast-loopback", mcast_loopback },
    { "mcast-block", mcast_block },
    { "mcast-detach", mcast_detach },
    { "mcast-receive", mcast_receive },
    { "mcast-send", mcast_send },
};

int main(int argc, char **argv)
{
    const char *device = NULL;
    int gid = 0, opt;
    size_t i;

    setvbuf(stdout, NULL, _IOLBF, 0);
    while ((opt = getopt(argc, argv, "+d:g:")) != -1) {
        if (opt == 'd') {
            device = optarg;
        } else if (opt == 'g') {
            gid = atoi(optarg);
        } else {
            return 2;
        }
    }
    if (!device || optind == argc) {
        fail("usage: rdma_objects -d DEVICE -g GID-INDEX CASE [ARGUMENTS]");
    }
    open_device(device, gid);
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (!strcmp(cases[i].name, argv[optind])) {
            cases[i].run(argv + optind + 1);
            printf("%s: fine\n", cases[i].name);
            return 0;
        }
    }
    fail("no case %s", argv[optind]);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * make-seeds CAPTURE DIR CORPUS: make the first inputs of the fuzzers.
 *
 * DIR/frame: each conversation of the capture becomes a file of records as
 * frame.c reads them. Addresses, QPNs, keys and PSNs are made to be those of
 * the fuzzer's engine, so that the frames are really taken; one more file
 * per opcode has a captured frame as it was.
 *
 * DIR/wqe, DIR/load, DIR/pair: any bytes make records of wqe.c and pair.c or
 * work for load.c; a fixed choice of random ones spares the fuzzers the time to
 * find out that long inputs are worth it.
 *
 * All of them: what fuzzers found worth keeping, from a file of CORPUS with the
 * program's name, where each line is an input in base 64.
 */
#include <stdio.h>
#include "../unit/wire-pcap.h"
#include "fuzz-env.h"

/* Records of frame.c */
#define FRAME_RAW 0
#define FRAME_FIXED 1
#define OWNER_POST_RECV 5

/* A limit that keeps inputs short */
#define MAX_FRAMES 12

#define RANDOM_SEEDS 32
#define RANDOM_SEED 20

typedef struct Seed {
    uint32_t qpn;
    uint8_t side;                   /* last byte of the source address */
    uint32_t psn;                   /* of the first frame */
    unsigned frames;
    GByteArray *bytes;
} Seed;

static void put_u8(GByteArray *b, uint8_t v)
{
    g_byte_array_append(b, &v, 1);
}

static void put_frame(GByteArray *b, uint8_t kind, const uint8_t *frame,
                      size_t len)
{
    put_u8(b, kind);
    put_u8(b, len);
    put_u8(b, len >> 8);
    g_byte_array_append(b, frame, len);
}

static void put_recv(GByteArray *b, uint8_t which)
{
    /* One SGE of 4096 bytes with all rights: sel 3 of pick_va() */
    const uint8_t record[] = {
        OWNER_POST_RECV, which, 1, 1, 0x00, 0x10, 3, 0, 0
    };

    g_byte_array_append(b, record, sizeof(record));
}

static unsigned place(const RocePacket *p)
{
    switch (p->info->transport) {
    case ROCE_RC:
        return FUZZ_RC;
    case ROCE_UC:
        return FUZZ_UC;
    default:
        return p->bth.dqpn == RDMA_QPN_GSI ? FUZZ_GSI : FUZZ_UD;
    }
}

/* Write the frame @p with the numbers of the fuzzer's engine. */
static void put_adapted(Seed *s, const FuzzEnv *env, const RocePacket *p)
{
    uint8_t frame[ROCE_MAX_FRAME] = { 0 };
    unsigned which = place(p);
    RoceBth bth = p->bth;
    RocePath path;
    size_t len, payload_len;

    /* QPs at odd places are connected by IPv6 */
    fuzz_path_to(env, !(which & 1), &path);
    bth.dqpn = fuzz_qpns[which];
    bth.psn = (bth.psn - s->psn) & RDMA_24BIT_MASK;
    bth.reth.va = FUZZ_IOVA + bth.reth.va % RDMA_PAGE_SIZE;
    bth.reth.rkey = FUZZ_KEY_ALL;
    bth.atomiceth.va = FUZZ_IOVA + bth.atomiceth.va % RDMA_PAGE_SIZE;
    bth.atomiceth.rkey = FUZZ_KEY_ALL;
    bth.ieth = FUZZ_KEY_FAST;
    bth.deth.qkey = which == FUZZ_GSI ? RDMA_GSI_QKEY : FUZZ_QKEY;

    payload_len = MIN(p->payload_len, 1024);
    len = roce_build(frame, &path, &bth, payload_len);
    memcpy(frame + len, p->payload, payload_len);
    len += payload_len + roce_pad(payload_len) + ROCE_ICRC_LEN;

    if (p->info->flags & ROCE_OP_SEND && p->info->flags & ROCE_OP_STARTS) {
        put_recv(s->bytes, which);
    }
    put_frame(s->bytes, FRAME_FIXED, frame, len);
}

static Seed *find_seed(GArray *seeds, const RocePacket *p)
{
    Seed fresh = {
        .qpn = p->bth.dqpn,
        .side = p->path.sgid[15],
        .psn = p->bth.psn,
    };
    unsigned i;

    for (i = 0; i < seeds->len; i++) {
        Seed *s = &g_array_index(seeds, Seed, i);

        if (s->qpn == fresh.qpn && s->side == fresh.side) {
            return s;
        }
    }
    fresh.bytes = g_byte_array_new();
    g_array_append_val(seeds, fresh);
    return &g_array_index(seeds, Seed, seeds->len - 1);
}

static void save(const char *dir, const char *name, GByteArray *bytes)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autoptr(GError) err = NULL;

    if (!g_file_set_contents(path, (char *)bytes->data, bytes->len, &err)) {
        g_error("%s", err->message);
    }
}

static void save_random(const char *top, const char *program)
{
    g_autofree char *dir = g_build_filename(top, program, NULL);
    g_autoptr(GRand) rand = g_rand_new_with_seed(RANDOM_SEED);
    unsigned i, len;

    g_mkdir_with_parents(dir, 0777);
    for (i = 0; i < RANDOM_SEEDS; i++) {
        g_autofree char *name = g_strdup_printf("random-%u", i);
        g_autoptr(GByteArray) bytes = g_byte_array_new();

        for (len = 64 << i % 5; len; len--) {
            put_u8(bytes, g_rand_int_range(rand, 0, 256));
        }
        save(dir, name, bytes);
    }
}

static void save_corpus(const char *top, const char *program,
                        const char *corpus)
{
    g_autofree char *dir = g_build_filename(top, program, NULL);
    g_autofree char *path = g_build_filename(corpus, program, NULL);
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    g_autoptr(GError) err = NULL;
    unsigned i;

    if (!g_file_get_contents(path, &text, NULL, &err)) {
        g_error("%s", err->message);
    }
    g_mkdir_with_parents(dir, 0777);
    lines = g_strsplit(text, "\n", 0);
    for (i = 0; lines[i] && *lines[i]; i++) {
        g_autofree char *name = g_strdup_printf("corpus-%u", i);
        GByteArray bytes;
        size_t len;

        bytes.data = g_base64_decode(lines[i], &len);
        bytes.len = len;
        save(dir, name, &bytes);
        g_free(bytes.data);
    }
}

int main(int argc, char **argv)
{
    static const char *const programs[] = { "frame", "load", "pair", "wqe" };
    g_autofree char *frame_dir = NULL;
    g_autoptr(GArray) seeds = g_array_new(false, true, sizeof(Seed));
    bool seen[256] = { false };
    GArray *frames;
    FuzzEnv *env;
    unsigned i;

    if (argc != 4) {
        fprintf(stderr, "usage: make-seeds CAPTURE DIR CORPUS\n");
        return 1;
    }
    for (i = 0; i < G_N_ELEMENTS(programs); i++) {
        save_corpus(argv[2], programs[i], argv[3]);
    }
    frame_dir = g_build_filename(argv[2], "frame", NULL);
    g_mkdir_with_parents(frame_dir, 0777);
    save_random(argv[2], "wqe");
    save_random(argv[2], "load");
    save_random(argv[2], "pair");
    frames = wire_pcap_read(argv[1]);
    env = fuzz_env_new(0);

    for (i = 0; i < frames->len; i++) {
        WireFrame *f = &g_array_index(frames, WireFrame, i);
        RocePacket p;
        Seed *s;

        if (roce_parse(f->data, f->len, &p) != ROCE_PARSE_OK) {
            continue;
        }
        if (!seen[p.bth.opcode]) {
            g_autofree char *name = g_strdup_printf("opcode-%02x",
                                                    p.bth.opcode);
            g_autoptr(GByteArray) raw = g_byte_array_new();

            put_frame(raw, FRAME_RAW, f->data, f->len);
            save(frame_dir, name, raw);
            seen[p.bth.opcode] = true;
        }
        s = find_seed(seeds, &p);
        if (s->frames++ < MAX_FRAMES) {
            put_adapted(s, env, &p);
        }
    }
    for (i = 0; i < seeds->len; i++) {
        Seed *s = &g_array_index(seeds, Seed, i);
        g_autofree char *name = g_strdup_printf("talk-%x-%u", s->qpn,
                                                s->side);

        save(frame_dir, name, s->bytes);
        g_byte_array_unref(s->bytes);
    }
    fuzz_env_free(env);
    g_array_unref(frames);
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The main program of a fuzzer that does not search: it runs the files of the
 * directories that it is given, each once, and speaks TAP.
 */
#include <stdio.h>
#include "fuzz-input.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static GPtrArray *files_of(const char *path)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) err = NULL;
    g_autoptr(GDir) dir = g_dir_open(path, 0, &err);
    const char *name;

    if (!dir) {
        g_error("%s", err->message);
    }
    while ((name = g_dir_read_name(dir))) {
        g_ptr_array_add(names, g_build_filename(path, name, NULL));
    }
    g_ptr_array_sort(names, by_name);
    return names;
}

static void run_file(const char *path)
{
    g_autoptr(GError) err = NULL;
    g_autofree char *data = NULL;
    size_t len;

    if (!g_file_get_contents(path, &data, &len, &err)) {
        g_error("%s", err->message);
    }
    LLVMFuzzerTestOneInput((const uint8_t *)data, len);
}

int main(int argc, char **argv)
{
    int arg;

    printf("1..%d\n", argc - 1);
    for (arg = 1; arg < argc; arg++) {
        g_autoptr(GPtrArray) names = files_of(argv[arg]);
        g_autofree char *base = g_path_get_basename(argv[arg]);
        unsigned i;

        for (i = 0; i < names->len; i++) {
            printf("# %s\n", (char *)names->pdata[i]);
            fflush(stdout);
            run_file(names->pdata[i]);
        }
        printf("%s %d - %s/%u-inputs\n", names->len ? "ok" : "not ok", arg,
               base, names->len);
    }
    return 0;
}

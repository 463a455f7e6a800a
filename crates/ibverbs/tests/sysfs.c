/* Reads the files of /sys/class/infiniband by all functions of the C library, and prints what it finds of a device. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLASS "/sys/class/infiniband"

static const char *device;

static void said(const char *what, int well) { printf("%s: %s\n", what, well ? "well" : strerror(errno)); }

static int count;

static int is_device(const struct dirent *entry) { return !strcmp(entry->d_name, device); }

static int by_name(const FTSENT **a, const FTSENT **b) { return strcmp((*a)->fts_name, (*b)->fts_name); }

static int visit(const char *path, const struct stat *status, int kind, struct FTW *at) {
    (void)status;
    count += kind == FTW_F && !strcmp(path + at->base, "rate") && !strncmp(path, CLASS "/", sizeof CLASS);
    return 0;
}

static int line(int fd, char *to) {
    ssize_t length = read(fd, to, 99);
    close(fd);
    if (length <= 0) return 0;
    to[length - 1] = 0;
    return 1;
}

int main(int argc, char **argv) {
    char path[500], text[100];
    struct stat status, other;
    device = argc > 1 ? argv[1] : "sv_lo";
    snprintf(path, sizeof path, CLASS "/%s", device);

    DIR *folder = opendir(CLASS);
    int found = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) found += is_device(entry);
    said("opendir, readdir", found == 1);
    if (folder) {
        said("fstatat of an open folder", !fstatat(dirfd(folder), device, &status, 0) && S_ISDIR(status.st_mode));
        snprintf(text, sizeof text, "%s/ports/1/state", device);
        int fd = openat(dirfd(folder), text, O_RDONLY);
        said("openat from an open folder", fd >= 0 && line(fd, text) && !strcmp(text, "4: ACTIVE"));
        snprintf(text, sizeof text, "%s/device/numa_node", device);
        fd = openat(dirfd(folder), text, O_RDONLY);
        said("openat through a link of an open folder", fd >= 0 && line(fd, text) && atoi(text) >= -1);
        said("faccessat", !faccessat(dirfd(folder), device, R_OK | X_OK, 0));
        said("readlinkat", readlinkat(dirfd(folder), device, text, sizeof text) > 0);
        closedir(folder);
    }
    struct dirent **list;
    said("scandir", scandir(CLASS, &list, is_device, alphasort) == 1);

    int is_link = !lstat(path, &status) && S_ISLNK(status.st_mode);
    said("lstat", is_link);
    ssize_t length = readlink(path, text, sizeof text);
    said("readlink", length > 12 && !strncmp(text, "../../devices/", 14));
    said("stat", !stat(path, &status) && S_ISDIR(status.st_mode));
    struct statx extended;
    said("statx", !statx(AT_FDCWD, path, 0, STATX_TYPE, &extended) && S_ISDIR(extended.stx_mode));
    said("access", !access(path, R_OK) && access(path, W_OK) && errno == EACCES);

    char *whole = realpath(path, NULL);
    said("realpath", whole && !strncmp(whole, "/sys/devices/", 13) && strstr(whole, device));
    strcat(path, "/../..");
    char *above = realpath(path, NULL);
    said("realpath of the hardware", above && whole && !strncmp(above, whole, strlen(above)));
    snprintf(path, sizeof path, CLASS "/%s/device", device);
    char *hardware = canonicalize_file_name(path);
    said("both are one", hardware && above && !strcmp(hardware, above));
    snprintf(path, sizeof path, "%s/infiniband/%s/node_type", above ? above : "", device);
    FILE *stream = fopen(path, "r");
    said("fopen from there", stream && fgets(text, sizeof text, stream) && !strcmp(text, "1: CA\n"));
    snprintf(path, sizeof path, "%s/numa_node", above ? above : "");
    stream = fopen(path, "r");
    said("numa_node", stream && fgets(text, sizeof text, stream) && atoi(text) >= -1);

    glob_t all = {0};
    found = 0;
    if (!glob(CLASS "/*/ports/*/gid_attrs/types/1", 0, NULL, &all))
        for (size_t at = 0; at < all.gl_pathc; at++) found += !!strstr(all.gl_pathv[at], device);
    said("glob", found == 1 && !strncmp(all.gl_pathv[0], CLASS "/", sizeof CLASS));

    snprintf(path, sizeof path, CLASS "/%s/ports", device);
    said("nftw", !nftw(path, visit, 10, FTW_PHYS) && count == 1);
    char *const paths[] = {path, NULL};
    FTS *walk = fts_open(paths, FTS_PHYSICAL, by_name);
    found = 0;
    for (FTSENT *entry; walk && (entry = fts_read(walk));)
        found += !strcmp(entry->fts_name, "rate") && !strncmp(entry->fts_path, "/sys/", 5) && !stat(entry->fts_path, &status);
    said("fts", found == 1);

    snprintf(path, sizeof path, CLASS "/%s/ports/1", device);
    said("chdir", !chdir(path));
    said("a relative path", !stat("gids/0", &status) && S_ISREG(status.st_mode));
    said("getcwd", getcwd(path, sizeof path) && whole && !strncmp(path, whole, strlen(whole)));
    said("up from there", !stat("../../node_guid", &status) && !stat("../../../..", &other) && S_ISDIR(other.st_mode));
    int fd = open("counters/port_xmit_data", O_RDONLY);
    said("a counter", fd >= 0 && line(fd, text) && text[0] >= '0' && text[0] <= '9');
    fd = open("rate", O_WRONLY);
    said("nothing is written", fd < 0 && errno == EACCES);
    fd = open("new", O_RDWR | O_CREAT, 0600);
    said("nothing is made", fd < 0 && errno == EACCES);

    said("others are not there", access(CLASS "/mlx5_99", F_OK) && errno == ENOENT);
    said("a node", !lstat("/dev/infiniband/rdma_cm", &status) && S_ISCHR(status.st_mode));
    return 0;
}

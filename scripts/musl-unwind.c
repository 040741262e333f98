/* Where the tables for unwinding are: what gcc's unwinder asks glibc (2.35 or newer) for, from the headers of a program that has another C library. For scripts/static.sh. */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdint.h>

/* What is found, as glibc 2.35's <dlfcn.h> has it; the unwinder reads the last of these fields. */
struct found {
    unsigned long long flags;
    void *start, *end, *map, *tables, *more[9];
};

struct search {
    uintptr_t address;
    struct found *found;
};

static int look(struct dl_phdr_info *info, size_t size, void *search_) {
    struct search *search = search_;
    const ElfW(Phdr) *tables = 0;
    int is_there = 0;
    for (int nth = 0; nth < info->dlpi_phnum; nth++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[nth];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_GNU_EH_FRAME) tables = part;
        if (part->p_type == PT_LOAD && search->address >= start && search->address - start < part->p_memsz) is_there = 1;
    }
    if (!is_there || !tables) return 0;
    search->found->tables = (void *)(info->dlpi_addr + tables->p_vaddr);
    return 1;
}

int _dl_find_object(void *address, struct found *found) {
    struct search search = {(uintptr_t)address, found};
    return dl_iterate_phdr(look, &search) ? 0 : -1;
}

/* The unwinder calls these, and names them so weakly that a static link leaves them out. */
__attribute__((used)) static void *const called[] = {
    (void *)pthread_once,        (void *)pthread_mutex_lock,  (void *)pthread_mutex_unlock,
    (void *)pthread_key_create,  (void *)pthread_getspecific, (void *)pthread_setspecific,
};

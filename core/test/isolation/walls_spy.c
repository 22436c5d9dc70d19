/* A kernel that does what it is told, to see what it can do behind walls. q holds the characters of a command, "WORD"
   or "WORD ARGUMENT…"; the answer is a failure whose message begins with "done" or with "refused", or tells what was
   asked for. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <attest/kernel.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static int argument_count;
static char** argument_list;
/* glibc gives the program's arguments to what it loads. */
__attribute__((constructor)) static void loaded(int argc, char** argv, char** envp) {
  (void)envp;
  argument_count = argc;
  argument_list = argv;
}

const char* attest_kernel_manifest(void) {
  return "{\"name\": \"spy\", \"abi\": 1, \"dtypes\": [\"f64\"], \"masks\": []}";
}

static char report[4096];
static void add(const char* text) {
  strncat(report, text, sizeof report - strlen(report) - 1);
}
static void add_number(long number) {
  char text[32];
  snprintf(text, sizeof text, "%ld", number);
  add(text);
}

static const char nine[] = "ninebytes";

static int open_and_close(const char* path, int flags) {
  const int fd = open(path, flags, 0600);
  char byte;
  if (fd < 0) return -1;
  if ((flags & O_ACCMODE) == O_RDONLY && read(fd, &byte, 1) != 1) return -1;
  return close(fd);
}

static int has_entries(const char* path) {
  DIR* const folder = opendir(path);
  int count = 0;
  if (folder == NULL) return -1;
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  errno = ENOENT;
  return count > 2 ? 0 : -1;
}

static int write_through_proc(long process, unsigned long address) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/mem", process);
  const int fd = open(path, O_RDWR);
  return fd >= 0 && pwrite(fd, nine, 9, (off_t)address) == 9 ? 0 : -1;
}

static int write_over_there(long process, unsigned long address) {
  struct iovec from = {(void*)nine, 9}, to = {(void*)address, 9};
  return process_vm_writev((pid_t)process, &from, 1, &to, 1, 0) == 9 ? 0 : -1;
}

static int trace(long process) {
  if (ptrace(PTRACE_SEIZE, (pid_t)process, 0, 0) != 0) return -1;
  ptrace(PTRACE_DETACH, (pid_t)process, 0, 0);
  return 0;
}

static int connect_to_port(long port) {
  struct sockaddr_in to = {0};
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  to.sin_family = AF_INET;
  to.sin_port = htons((unsigned short)port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return fd < 0 ? -1 : connect(fd, (struct sockaddr*)&to, sizeof to);
}

static int connect_to_abstract(const char* name) {
  struct sockaddr_un to = {0};
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  to.sun_family = AF_UNIX;
  snprintf(to.sun_path + 1, sizeof to.sun_path - 1, "%s", name);
  return fd < 0 ? -1
                : connect(fd, (struct sockaddr*)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)));
}

static int start_processes(long wanted) {
  pid_t started[1024];
  long count = 0;
  int why = 0;
  for (; count < wanted && count < 1024; ++count) {
    started[count] = fork();
    if (started[count] == 0) {
      for (;;) pause();
    }
    if (started[count] < 0) break;
  }
  why = errno;
  for (long i = 0; i < count; ++i) kill(started[i], SIGKILL);
  for (long i = 0; i < count; ++i) waitpid(started[i], NULL, 0);
  errno = why;
  return count == wanted ? 0 : -1;
}

/* Another session and another parent, under a name that can be looked for. */
static int leave_daemon(const char* name) {
  const pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    setsid();
    if (fork() == 0) {
      prctl(PR_SET_NAME, name);
      for (;;) pause();
    }
    _exit(0);
  }
  usleep(100000);
  return 0;
}

static int limit_other(long process) {
  struct rlimit now;
  if (prlimit((pid_t)process, RLIMIT_CORE, NULL, &now) != 0) return -1;
  return prlimit((pid_t)process, RLIMIT_CORE, &now, NULL);
}

static int name_peer(void) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(3, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return -1;
  errno = ESRCH;
  return peer.pid > 0 ? 0 : -1;
}

static int signal_by_descriptor(long process) {
  int ends[2];
  return pipe(ends) != 0 ? -1 : fcntl(ends[0], F_SETOWN, (int)process);
}
/* The same call with a number of which the kernel takes the lower half. */
static int signal_by_long_number(long process) {
  int ends[2];
  return pipe(ends) != 0 ? -1 : (int)syscall(SYS_fcntl, (long)ends[0], 0x100000000L + F_SETOWN, process);
}

/* A socket by the numbers of other machines. */
#ifdef __x86_64__
static int socket_of_x32(void) {
  return (int)syscall(0x40000000 + SYS_socket, AF_UNIX, SOCK_STREAM, 0);
}
static int socket_of_i386(void) {
  int result = 359;
  __asm__ volatile("int $0x80" : "+a"(result) : "b"(AF_UNIX), "c"(SOCK_STREAM), "d"(0) : "memory", "r8", "r9", "r10", "r11");
  errno = result < 0 ? -result : 0;
  return result < 0 ? -1 : result;
}
#else
static int socket_of_x32(void) {
  return -1;
}
static int socket_of_i386(void) {
  return -1;
}
#endif

static int add_object(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size, (void)data;
  add(info->dlpi_name);
  add(" ");
  return 0;
}

static void tell_names(void) {
  for (int i = 0; i < argument_count; ++i) add(argument_list[i]), add(" ");
  add(program_invocation_name), add(" ");
  add((const char*)getauxval(AT_EXECFN)), add(" ");
  dl_iterate_phdr(add_object, NULL);
}

static void tell_descriptors(void) {
  for (int fd = 0; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) == -1) continue;
    add_number(fd);
    add(" ");
  }
}

static int do_as_told(const char* word, char* argument) {
  const long number = strtol(argument, NULL, 10);
  const char* const second = strchr(argument, ' ');
  const unsigned long address = second == NULL ? 0 : strtoul(second, NULL, 10);
#define IS(text) (strcmp(word, text) == 0)
  if (IS("read")) return open_and_close(argument, O_RDONLY);
  if (IS("write")) return open_and_close(argument, O_WRONLY | O_CREAT);
  if (IS("list")) return has_entries(argument);
  if (IS("unlink")) return unlink(argument);
  if (IS("chmod")) return chmod(argument, 0777);
  if (IS("memory")) return write_through_proc(number, address);
  if (IS("vmwrite")) return write_over_there(number, address);
  if (IS("ptrace")) return trace(number);
  if (IS("signal")) return kill((pid_t)number, SIGURG);
  if (IS("owner")) return signal_by_descriptor(number);
  if (IS("long-owner")) return signal_by_long_number(number);
  if (IS("limit")) return limit_other(number);
  if (IS("pidfd")) return (int)syscall(SYS_pidfd_open, number, 0);
  if (IS("connect")) return connect_to_port(number);
  if (IS("abstract")) return connect_to_abstract(argument);
  if (IS("socket-of-x32")) return socket_of_x32();
  if (IS("socket-of-i386")) return socket_of_i386();
  if (IS("segment")) return shmget((key_t)number, 0, 0);
  if (IS("namespace")) return unshare(CLONE_NEWUSER);
  if (IS("processes")) return start_processes(number);
  if (IS("daemon")) return leave_daemon(argument);
  if (IS("root")) return setuid(0);
  if (IS("peer")) return name_peer();
  if (IS("user")) return add_number(getuid()), 0;
  if (IS("names")) return tell_names(), 0;
  if (IS("descriptors")) return tell_descriptors(), 0;
  if (IS("environment")) {
    for (char** entry = environ; *entry != NULL; ++entry) add(*entry), add(" ");
    return 0;
  }
  errno = EINVAL;
  return -1;
}

int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t message_size) {
  char command[1024] = "";
  (void)r;
  for (int64_t i = 0; i < p->q.shape[3] && i + 1 < (int64_t)sizeof command; ++i)
    command[i] = (char)((const double*)p->q.data)[i * p->q.stride[3]];
  char* const space = strchr(command, ' ');
  if (space != NULL) *space = '\0';
  report[0] = '\0';
  if (do_as_told(command, space == NULL ? command + strlen(command) : space + 1) >= 0) {
    snprintf(message, message_size, "done %s", report);
  } else {
    snprintf(message, message_size, "refused: %s", strerror(errno));
  }
  return 3;
}

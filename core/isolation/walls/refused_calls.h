// The system calls that are refused behind walls: those that reach other processes, make or leave namespaces, mount,
// open sockets, or reach parts of the system that no computation needs. Everything else is the file system's, which the
// other walls guard, or concerns the process alone.
#pragma once

#include <array>

namespace attest::process {

struct RefusedCall {
  const char* name;
  int number = -1;      ///< of one that libseccomp may not know yet; the same on every machine
  bool absent = false;  ///< answered as if the system had no such call (ENOSYS), so that libraries do without
};

/// Behind every wall.
inline constexpr std::array refused_calls{
    // Other processes.
    RefusedCall{"ptrace"}, RefusedCall{"process_vm_readv"}, RefusedCall{"process_vm_writev"}, RefusedCall{"kcmp"},
    RefusedCall{"pidfd_open", 434}, RefusedCall{"pidfd_getfd", 438}, RefusedCall{"pidfd_send_signal", 424},
    RefusedCall{"process_madvise", 440}, RefusedCall{"process_mrelease", 448}, RefusedCall{"move_pages"},
    RefusedCall{"migrate_pages"}, RefusedCall{"perf_event_open"}, RefusedCall{"userfaultfd"}, RefusedCall{"bpf"},
    // What kernels' processes could share.
    RefusedCall{"add_key"}, RefusedCall{"request_key"}, RefusedCall{"keyctl"}, RefusedCall{"shmget"},
    RefusedCall{"shmat"}, RefusedCall{"shmctl"}, RefusedCall{"shmdt"}, RefusedCall{"semget"}, RefusedCall{"semop"},
    RefusedCall{"semtimedop"}, RefusedCall{"semctl"}, RefusedCall{"msgget"}, RefusedCall{"msgsnd"},
    RefusedCall{"msgrcv"}, RefusedCall{"msgctl"}, RefusedCall{"mq_open"}, RefusedCall{"mq_unlink"},
    // The network. What is connected already stays so.
    RefusedCall{"socket"}, RefusedCall{"bind"}, RefusedCall{"connect"}, RefusedCall{"listen"}, RefusedCall{"accept"},
    RefusedCall{"accept4"},
    // Namespaces and mounts.
    RefusedCall{"unshare"}, RefusedCall{"setns"}, RefusedCall{"clone3", 435, true}, RefusedCall{"mount"},
    RefusedCall{"umount2"}, RefusedCall{"pivot_root"}, RefusedCall{"chroot"}, RefusedCall{"open_tree", 428},
    RefusedCall{"move_mount", 429}, RefusedCall{"fsopen", 430}, RefusedCall{"fsconfig", 431},
    RefusedCall{"fsmount", 432}, RefusedCall{"fspick", 433}, RefusedCall{"mount_setattr", 442},
    RefusedCall{"statmount", 457}, RefusedCall{"listmount", 458}, RefusedCall{"open_tree_attr", 467},
    RefusedCall{"name_to_handle_at"}, RefusedCall{"open_by_handle_at"}, RefusedCall{"fanotify_init"},
    // Requests that run beside the process, where no filter sees them.
    RefusedCall{"io_uring_setup", 425, true}, RefusedCall{"io_uring_enter", 426, true},
    RefusedCall{"io_uring_register", 427, true},
    // The system at large.
    RefusedCall{"personality"}, RefusedCall{"modify_ldt"}, RefusedCall{"iopl"}, RefusedCall{"ioperm"},
    RefusedCall{"syslog"}, RefusedCall{"acct"}, RefusedCall{"quotactl"}, RefusedCall{"quotactl_fd", 443},
    RefusedCall{"swapon"}, RefusedCall{"swapoff"}, RefusedCall{"reboot"}, RefusedCall{"kexec_load"},
    RefusedCall{"kexec_file_load"}, RefusedCall{"init_module"}, RefusedCall{"finit_module"},
    RefusedCall{"delete_module"}, RefusedCall{"settimeofday"}, RefusedCall{"clock_settime"},
    RefusedCall{"clock_adjtime"}, RefusedCall{"adjtimex"}, RefusedCall{"sethostname"}, RefusedCall{"setdomainname"},
    RefusedCall{"vhangup"}};

/// Where no namespace stands between the process and the user's others: what leaves the process group by which all that
/// a kernel starts is killed, what changes files without opening them, which Landlock does not see, and what changes
/// the priorities of others.
inline constexpr std::array refused_bare_calls{RefusedCall{"setsid"},       RefusedCall{"setpgid"},
                                               RefusedCall{"chmod"},        RefusedCall{"fchmod"},
                                               RefusedCall{"fchmodat"},     RefusedCall{"fchmodat2", 452},
                                               RefusedCall{"chown"},        RefusedCall{"fchown"},
                                               RefusedCall{"lchown"},       RefusedCall{"fchownat"},
                                               RefusedCall{"utime"},        RefusedCall{"utimes"},
                                               RefusedCall{"futimesat"},    RefusedCall{"utimensat"},
                                               RefusedCall{"setxattr"},     RefusedCall{"lsetxattr"},
                                               RefusedCall{"fsetxattr"},    RefusedCall{"setxattrat", 463},
                                               RefusedCall{"removexattr"},  RefusedCall{"lremovexattr"},
                                               RefusedCall{"fremovexattr"}, RefusedCall{"removexattrat", 466},
                                               RefusedCall{"setpriority"},  RefusedCall{"ioprio_set"}};

/// Where Landlock of this machine does not keep signals within (before its ABI 6), and no namespace does.
inline constexpr std::array refused_signals{RefusedCall{"kill"}, RefusedCall{"tkill"}, RefusedCall{"tgkill"},
                                            RefusedCall{"rt_sigqueueinfo"}, RefusedCall{"rt_tgsigqueueinfo"}};

}  // namespace attest::process

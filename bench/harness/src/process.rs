//! One run of one contender in a process of its own, measured from outside.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(5);

/// What a run cost, and what it printed.
#[derive(Debug)]
pub(crate) struct Run {
    /// User and system time of all its threads.
    pub(crate) cpu: Duration,
    /// Peak resident memory, in bytes.
    pub(crate) peak: u64,
    /// Standard output.
    pub(crate) output: String,
}

/// A process that sleeps uses no CPU time; by the wall clock it gets this many times its limit.
const PATIENCE: u32 = 20;

/// Runs a command to its end; an error says why there is no result. The limit is of CPU time, so that a busy machine
/// puts nobody out.
pub(crate) fn run(command: &[String], limit: Duration) -> Result<Run, String> {
    let (mut output, mut errors) = (unnamed_file("stdout")?, unnamed_file("stderr")?);
    let mut child = Command::new(&command[0]);
    child
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(shared(&output)?)
        .stderr(shared(&errors)?)
        .process_group(0);
    // SAFETY: `setrlimit` may be called between fork and exec, and nothing else is done there.
    unsafe { child.pre_exec(move || limit_cpu(limit)) };
    let child = child
        .spawn()
        .map_err(|error| format!("{}: {error}", command[0]))?;
    let (status, usage) = await_end(child.id() as libc::pid_t, limit * PATIENCE)?;
    if status.signal() == Some(libc::SIGXCPU) {
        return Err(format!("time-out after {} s of CPU time", limit.as_secs()));
    }
    if !status.success() {
        return Err(reason(status, &contents(&mut errors)));
    }
    Ok(Run {
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        peak: usage.ru_maxrss as u64 * 1024,
        output: contents(&mut output),
    })
}

fn limit_cpu(limit: Duration) -> std::io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: limit.as_secs(),
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the limit is a valid one.
    match unsafe { libc::setrlimit(libc::RLIMIT_CPU, &raw const limit) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Waits for a child that only this function reaps, and kills its process group when the time is over.
fn await_end(pid: libc::pid_t, timeout: Duration) -> Result<(ExitStatus, libc::rusage), String> {
    let begin = Instant::now();
    let mut killed = false;
    loop {
        let mut status = 0;
        // SAFETY: all zero is a valid rusage.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both places are valid; the child is ours and not yet reaped.
        let ended = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) };
        match ended {
            0 if !killed && begin.elapsed() > timeout => {
                // SAFETY: the group of our own child, which is not reaped, so its number is not used again.
                unsafe { libc::kill(-pid, libc::SIGKILL) };
                killed = true;
            }
            0 => std::thread::sleep(POLL),
            _ if killed => return Err(format!("hangs: {} s", timeout.as_secs())),
            _ if ended == pid => return Ok((ExitStatus::from_raw(status), usage)),
            _ => return Err(std::io::Error::last_os_error().to_string()),
        }
    }
}

fn reason(status: ExitStatus, errors: &str) -> String {
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown end".into(),
    };
    match errors.lines().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("{how}: {}", line.trim()),
        None => how,
    }
}

fn time(time: libc::timeval) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000)
}

/// A file in memory, so that a child that prints much never waits for us.
fn unnamed_file(name: &str) -> Result<File, String> {
    let name = std::ffi::CString::new(name).expect("no zero in the name");
    // SAFETY: the name is a string of C.
    let descriptor = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error().to_string());
    }
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }.into())
}

fn shared(file: &File) -> Result<Stdio, String> {
    let copy = file.try_clone().map_err(|error| error.to_string())?;
    Ok(copy.into())
}

fn contents(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("unreadable: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, timeout: Duration) -> Result<Run, String> {
        run(&["sh".into(), "-c".into(), script.into()], timeout)
    }

    #[test]
    fn measures_and_reads() {
        let run = shell("echo hello", Duration::from_secs(10)).unwrap();
        assert_eq!(run.output, "hello\n");
        assert!(run.peak > 0);
    }

    #[test]
    fn says_why_there_is_no_result() {
        let error = shell("echo broken >&2; exit 3", Duration::from_secs(10)).unwrap_err();
        assert_eq!(error, "exit code 3: broken");
        let error = shell("while :; do :; done", Duration::from_secs(1)).unwrap_err();
        assert!(error.starts_with("time-out"), "{error}");
        let error = shell("kill -SEGV $$", Duration::from_secs(10)).unwrap_err();
        assert!(error.starts_with("signal 11"), "{error}");
    }
}

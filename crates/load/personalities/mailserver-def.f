# Mail server: deliver, read, answer and delete mails of 16 KB, each delivery flushed to disk; one flat directory.
# Cao, Table 4.2, mailserver-def: 1,000 files, directory width 1,000, 16 threads, 100 s.
set $nfiles=1000
set $meandirwidth=1000
set $filesize=cvar(type=cvar-gamma,parameters=mean:16k;gamma:1.5)
set $nthreads=16
set $iosize=1m
set $appendsize=16k

define fileset name=mailboxes,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80

define process name=mailserver,instances=1
{
  thread name=user,instances=$nthreads
  {
    flowop deletefile name=deletefile1,filesetname=mailboxes
    flowop createfile name=createfile1,filesetname=mailboxes,fd=1
    flowop appendfilerand name=appendfile1,fd=1,iosize=$appendsize
    flowop fsync name=fsync1,fd=1
    flowop closefile name=closefile1,fd=1
    flowop openfile name=openfile1,filesetname=mailboxes,fd=1
    flowop readwholefile name=readfile1,fd=1,iosize=$iosize
    flowop appendfilerand name=appendfile2,fd=1,iosize=$appendsize
    flowop fsync name=fsync2,fd=1
    flowop closefile name=closefile2,fd=1
    flowop openfile name=openfile2,filesetname=mailboxes,fd=1
    flowop readwholefile name=readfile2,fd=1,iosize=$iosize
    flowop closefile name=closefile3,fd=1
  }
}

run 100

# Many readers, little memory: 32 viewers read passages of 16 MB of files, 64 KB at a time, and one process writes
# a log, 20 times a second. Read-ahead that helps one reader makes 32 of them push each other's pages
# out of the cache.
set $dir=/data
set $viewers=32
eventgen rate=20
define fileset name=videos,path=$dir,size=64m,entries=24,dirwidth=20,prealloc=100
define fileset name=log,path=$dir,size=16m,entries=1,dirwidth=20,prealloc=100
define process name=server,instances=1
{
  thread name=viewer,instances=$viewers
  {
    flowop openfile name=open1,filesetname=videos,fd=1
    flowop read name=seek1,fd=1,iosize=64k,random
    flowop read name=read1,fd=1,iosize=64k,iters=256
    flowop closefile name=close1,fd=1
  }
  thread name=logger,instances=1
  {
    flowop write name=write1,filesetname=log,iosize=16k
    flowop opslimit name=limit1
  }
}

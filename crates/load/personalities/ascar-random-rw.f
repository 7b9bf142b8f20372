# Random reads and writes of 1 MB past the cache, one read a write: 5 clients, each on a file of its own of 5 GB.
# Li, section 3.2.2.
set $filesize=5g
set $iosize=1m

define fileset name=file1,path=$dir,size=$filesize,prealloc,reuse
define fileset name=file2,path=$dir,size=$filesize,prealloc,reuse
define fileset name=file3,path=$dir,size=$filesize,prealloc,reuse
define fileset name=file4,path=$dir,size=$filesize,prealloc,reuse
define fileset name=file5,path=$dir,size=$filesize,prealloc,reuse

define process name=clients,instances=1
{
  thread name=client1
  {
    flowop read name=read1,filesetname=file1,iosize=$iosize,random,iters=1,directio
    flowop write name=write1,filesetname=file1,iosize=$iosize,random,iters=1,directio
  }
  thread name=client2
  {
    flowop read name=read2,filesetname=file2,iosize=$iosize,random,iters=1,directio
    flowop write name=write2,filesetname=file2,iosize=$iosize,random,iters=1,directio
  }
  thread name=client3
  {
    flowop read name=read3,filesetname=file3,iosize=$iosize,random,iters=1,directio
    flowop write name=write3,filesetname=file3,iosize=$iosize,random,iters=1,directio
  }
  thread name=client4
  {
    flowop read name=read4,filesetname=file4,iosize=$iosize,random,iters=1,directio
    flowop write name=write4,filesetname=file4,iosize=$iosize,random,iters=1,directio
  }
  thread name=client5
  {
    flowop read name=read5,filesetname=file5,iosize=$iosize,random,iters=1,directio
    flowop write name=write5,filesetname=file5,iosize=$iosize,random,iters=1,directio
  }
}

run 60

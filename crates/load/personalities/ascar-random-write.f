# Random writes of 1 MB past the cache: 5 clients, each to a file of its own of 5 GB.
# Li, section 3.2.2.
set $filesize=5g
set $iosize=1m

define fileset name=stream1,path=$dir,size=$filesize,prealloc,reuse
define fileset name=stream2,path=$dir,size=$filesize,prealloc,reuse
define fileset name=stream3,path=$dir,size=$filesize,prealloc,reuse
define fileset name=stream4,path=$dir,size=$filesize,prealloc,reuse
define fileset name=stream5,path=$dir,size=$filesize,prealloc,reuse

define process name=streams,instances=1
{
  thread name=stream1,instances=1
  {
    flowop write name=write1,filesetname=stream1,iosize=$iosize,random,directio
  }
  thread name=stream2,instances=1
  {
    flowop write name=write2,filesetname=stream2,iosize=$iosize,random,directio
  }
  thread name=stream3,instances=1
  {
    flowop write name=write3,filesetname=stream3,iosize=$iosize,random,directio
  }
  thread name=stream4,instances=1
  {
    flowop write name=write4,filesetname=stream4,iosize=$iosize,random,directio
  }
  thread name=stream5,instances=1
  {
    flowop write name=write5,filesetname=stream5,iosize=$iosize,random,directio
  }
}

run 60

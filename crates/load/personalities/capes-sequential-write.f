# Five streams that write in sequence, 1 MB at a time, each to a file of its own: checkpoints, video surveillance.
# Li et al., SC'17, section 4.3, one client's share; files of 1 GB as in Filebench, written over again and again.
set $filesize=1g
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
    flowop write name=write1,filesetname=stream1,iosize=$iosize
  }
  thread name=stream2,instances=1
  {
    flowop write name=write2,filesetname=stream2,iosize=$iosize
  }
  thread name=stream3,instances=1
  {
    flowop write name=write3,filesetname=stream3,iosize=$iosize
  }
  thread name=stream4,instances=1
  {
    flowop write name=write4,filesetname=stream4,iosize=$iosize
  }
  thread name=stream5,instances=1
  {
    flowop write name=write5,filesetname=stream5,iosize=$iosize
  }
}

run 60

# Database under online transactions with a data set of 10 GB.
# Cao, Table 4.2, dbserver-heavy: 10 files of 1 GB, 10 database threads and 1 log writer, 10 reads a write, 100 s.
# Readers post to the writers: 10 writes for each 100 reads, and a write of the log for each 3,200; when the writers fall
# behind, the readers wait. Writes are asynchronous and synchronous to disk, 2 KB each; the log's are 256 KB.
set $filesize=1g
set $nfiles=10
set $nreaders=10
set $nwriters=10
set $iosize=2k

define fileset name=datafiles,path=$dir,size=$filesize,entries=$nfiles,dirwidth=1024,prealloc=100,reuse
define fileset name=logfile,path=$dir,size=10m,entries=1,dirwidth=1024,prealloc=100,reuse

define process name=logwriter,instances=1
{
  thread name=logwriter
  {
    flowop semblock name=logblock,value=3200,highwater=1000
    flowop aiowrite name=logwrite,filesetname=logfile,iosize=256k,random,dsync
    flowop aiowait name=logwait
  }
}

define process name=dbwriter,instances=$nwriters
{
  thread name=dbwriter
  {
    flowop semblock name=dbblock,value=100,highwater=200
    flowop aiowrite name=dbwrite,filesetname=datafiles,iosize=$iosize,random,iters=10,opennext,dsync
    flowop aiowait name=dbwait
  }
}

define process name=reader,instances=$nreaders
{
  thread name=reader
  {
    flowop read name=dbread,filesetname=datafiles,iosize=$iosize,random,opennext
    flowop sempost name=postlog,value=1,target=logblock,blocking
    flowop sempost name=postdb,value=1,target=dbblock,blocking
  }
}

run 100
